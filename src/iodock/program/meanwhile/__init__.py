"""File servers during a run: the query to the site's monitor, and its answer in words. The command line
supplies the monitor (docs/decisions/0038)."""
