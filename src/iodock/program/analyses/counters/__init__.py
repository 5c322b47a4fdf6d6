"""Analyses of counters. They answer the same questions with the same columns, but from profiles instead of
calls."""
