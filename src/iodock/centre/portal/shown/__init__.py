"""Builds the content of each page, which is tables and charts without HTML."""
