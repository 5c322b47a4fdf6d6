"""Formats the results of queries about a centre as text, HTML and JSON."""
