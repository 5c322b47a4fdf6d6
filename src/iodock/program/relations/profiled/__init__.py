"""Brings counters of files (from Darshan logs and light recordings) into the tables that analyses need."""
