"""Tests of the redaction layer."""
