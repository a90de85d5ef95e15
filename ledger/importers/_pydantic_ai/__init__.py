"""How Pydantic AI writes message histories. May be imported by its importer alone."""
