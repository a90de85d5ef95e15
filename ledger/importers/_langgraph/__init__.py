"""Mechanics of the LangGraph importer: what its savers keep, decoded by ourselves. For `ledger.importers.langgraph`."""
