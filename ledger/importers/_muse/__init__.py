"""Mechanics of the Muse Code importer. Only `muse_code.py` imports them."""
