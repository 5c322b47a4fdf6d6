"""The check-up of a file system: its properties, its performance, and its response times over the day."""
