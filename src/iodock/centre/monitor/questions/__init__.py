"""Queries on a monitor store, one per file: from a span of time to a table. They know neither pages nor
number formats."""
