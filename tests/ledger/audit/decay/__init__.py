"""Governance decay."""
