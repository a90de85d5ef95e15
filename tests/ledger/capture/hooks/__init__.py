"""Hooks without their frameworks; with them: tests/frameworks."""
