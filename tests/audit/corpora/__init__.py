"""Labelled corpora, one module each, found by discovery: see `Corpus` in `tests.audit.labelled`."""
