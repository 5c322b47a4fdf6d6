"""Performance of a file system: measurements, from our own check-up or other benchmarks, and remarks on
them."""
