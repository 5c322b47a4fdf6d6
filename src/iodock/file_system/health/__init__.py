"""What a file system can do: measurements, from our own check-up or others' benchmarks, and what they say."""
