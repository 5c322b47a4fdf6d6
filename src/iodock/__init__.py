"""The I/O check-up for HPC: record or import a program's file I/O, and see where time and bytes go."""
