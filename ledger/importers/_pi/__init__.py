"""Mechanics of the pi importer. Only `pi.py` imports them."""
