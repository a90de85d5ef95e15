"""How the inputs and outputs of LangSmith runs are read; only `ledger.importers.langsmith` imports from here."""
