"""Tests of the vocabulary of facts."""
