"""Mechanics of the Gemini CLI importer. Only `gemini_cli.py` imports them."""
