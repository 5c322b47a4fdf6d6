"""The check-up of a centre: the load of each job on the file systems. Collector, queries and portal."""
