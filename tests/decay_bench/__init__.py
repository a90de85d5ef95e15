"""An open bench of governance decay: scripted agents, compactors, rules. Deterministic; no model is asked.

`python -m tests.decay_bench` (or `make bench-decay`) prints the table; README says what the columns mean.
"""
