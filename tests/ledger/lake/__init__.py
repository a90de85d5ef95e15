"""Tests of the lake: export, crashes, tables, queries."""
