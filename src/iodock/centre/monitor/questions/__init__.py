"""Queries on a monitor store, one per file: each gives a table for a span of time. They know nothing about
pages or number formats."""
