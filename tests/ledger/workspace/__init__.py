"""Tests of looking at a workspace and putting it back."""
