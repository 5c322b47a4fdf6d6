"""The SQL engine: a connection for each thread, what a question needs, and checksums of its files."""
