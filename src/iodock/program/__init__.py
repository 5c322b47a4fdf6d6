"""Performs the check-up of a program: records it, analyses its I/O, diagnoses it with changes to make, and
writes the report."""
