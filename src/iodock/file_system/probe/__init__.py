"""Probes: a few small operations on a file system throughout the day, and the analysis of their results."""
