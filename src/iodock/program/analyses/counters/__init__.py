"""Analyses of counters: the same questions and columns, answered from profiles instead of calls."""
