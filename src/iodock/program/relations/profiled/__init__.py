"""Counters of files (Darshan logs, light recordings) as the relations that analyses need."""
