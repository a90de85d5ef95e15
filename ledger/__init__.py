"""Record, keep, prove, read: the ledger of agent loops. Stands below `replay` and `webui`, knows neither."""
