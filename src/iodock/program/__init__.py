"""The check-up of a program: its recording, what it did, what is wrong, what to change, and the report."""
