"""Tests of safe queries."""
