"""Tests of the importers, and what makes their fixtures."""
