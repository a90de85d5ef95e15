"""Parts of the AutoGen importer."""
