"""The servers' side of a run: what is asked of the site's monitor, and what its answers say. Who answers is
put in by the command line (docs/decisions/0038)."""
