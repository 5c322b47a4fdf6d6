"""File servers during a run: the query to the site's monitor, and its answer in sentences. The command line
provides the monitor (docs/decisions/0038)."""
