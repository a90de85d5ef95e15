"""Going on in a real runtime: laws and refusals. Real harnesses go on in tests/harnesses, real frameworks in theirs."""
