"""Hostile texts, and a session full of them."""
