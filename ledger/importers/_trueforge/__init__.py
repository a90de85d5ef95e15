"""Mechanics of the TrueForge importer. Only `trueforge.py` imports them."""
