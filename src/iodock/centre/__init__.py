"""The check-up of a centre: which job does what to the file systems. Collector, questions and portal."""
