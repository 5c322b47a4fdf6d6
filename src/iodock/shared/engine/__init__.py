"""The SQL engine: a connection for each thread, the parts of tables that a query needs, and checksums of its
files."""
