"""The check-up of a program: its recording, its I/O, the diagnosis with changes to make, and the report."""
