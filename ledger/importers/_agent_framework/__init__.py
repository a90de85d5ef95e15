"""Parts of the Microsoft Agent Framework importer."""
