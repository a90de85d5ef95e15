"""Detectors measured on labelled sessions, each beside its trivial baseline: `python -m tests.audit.measure`."""
