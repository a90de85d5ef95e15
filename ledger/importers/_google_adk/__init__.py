"""How Google's ADK writes events, sessions and evalsets. May be imported by its importer alone."""
