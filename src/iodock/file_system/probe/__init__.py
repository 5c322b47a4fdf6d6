"""Fixed-point observation: a few small operations on a file system, all day long, and what they show."""
