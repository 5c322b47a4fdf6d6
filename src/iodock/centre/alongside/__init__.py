"""Data of the monitor store about the time in which a program was recorded elsewhere."""
