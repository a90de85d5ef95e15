"""Taps: hooks of a harness, and pass-throughs between two programs."""
