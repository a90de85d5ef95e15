"""Mechanics of the opencode importer. Only `opencode.py` imports them."""
