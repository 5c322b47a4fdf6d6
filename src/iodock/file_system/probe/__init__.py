"""Probes a file system: executes a few small operations at fixed intervals throughout the day, and analyses
how long they took."""
