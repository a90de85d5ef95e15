"""How Codex's rows become events; only `ledger.importers.codex` imports from here."""
