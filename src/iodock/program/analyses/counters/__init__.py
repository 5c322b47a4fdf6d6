"""Contains the variants of analyses for stores of counters. They answer the same questions with the same
columns, but compute the answers from profiles instead of calls."""
