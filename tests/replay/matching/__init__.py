"""Tests of the matching of requests."""
