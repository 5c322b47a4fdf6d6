"""This package examines a file system: its properties, its performance, and its response times over the
day."""
