"""Other engines than DuckDB for the same SQL: what they must agree on, and how they are asked. Needs the extra `spark`.

Import its modules, not this package's names: what they stand on may not be installed.
"""
