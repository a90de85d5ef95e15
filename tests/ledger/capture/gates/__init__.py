"""Tests of what may stop a live loop."""
