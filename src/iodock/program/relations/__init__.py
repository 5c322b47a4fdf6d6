"""Shared by analyses: filters, grouping keys, and the one SELECT that counts calls."""
