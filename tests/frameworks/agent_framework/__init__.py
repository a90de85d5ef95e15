"""The hook of the Microsoft Agent Framework."""
