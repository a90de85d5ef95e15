"""The hook of Google ADK."""
