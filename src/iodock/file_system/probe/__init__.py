"""Probes: a few small operations on a file system throughout the day, and what they show."""
