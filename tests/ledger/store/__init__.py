"""Tests of the store: one suite, run against every database."""
