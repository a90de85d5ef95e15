"""Parts of the CrewAI importer."""
