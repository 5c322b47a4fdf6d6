"""Counters of files (Darshan's logs, a light recording) as the relations that analyses ask for."""
