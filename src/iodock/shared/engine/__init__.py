"""The SQL engine: a connection for each thread, the requirements of a query, and checksums of its files."""
