"""This package measures the performance of a file system, reads the results of other benchmarks, and writes
remarks on the measurements."""
