"""Tests of effect classes."""
