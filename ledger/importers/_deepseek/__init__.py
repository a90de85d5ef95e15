"""Mechanics of the DeepSeek Harness importer. Only `deepseek_harness.py` imports them."""
