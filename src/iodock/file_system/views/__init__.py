"""Formats a file system's card, measurements and probes as text, JSON, CSV, HTML pages and charts."""
