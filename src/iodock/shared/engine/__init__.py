"""Accesses DuckDB, the SQL engine: opens connections, converts answers to Arrow, describes which rows a query
needs, and verifies checksums of files."""
