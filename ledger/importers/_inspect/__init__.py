"""How Inspect's samples and events become ours; only `ledger.importers.inspect_ai` imports from here."""
