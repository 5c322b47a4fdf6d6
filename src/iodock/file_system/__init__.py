"""The check-up of a file system: what it is, what it can do, and how it answers all day long."""
