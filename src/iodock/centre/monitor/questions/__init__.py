"""Queries on a monitor store. Each module runs one kind of query, which returns a table for a span of time.
The queries are independent of pages and number formats."""
