"""How Claude Code's rows become events; only `ledger.importers.claude_code` imports from here."""
