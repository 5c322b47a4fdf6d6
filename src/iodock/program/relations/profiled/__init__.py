"""Counters of files (Darshan logs, light recordings) in the form of the relations that analyses need."""
