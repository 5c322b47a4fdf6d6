"""A file system and its measurements as text, JSON, CSV, pages and charts."""
