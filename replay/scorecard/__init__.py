"""The scorecard: six questions to a loop, answered from its records. May import ledger and the proofs of replay."""
