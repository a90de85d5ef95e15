"""Tests of rules over sequences."""
