"""Pages and the root command line. Stands on `replay` and `ledger`; nothing may import it."""
