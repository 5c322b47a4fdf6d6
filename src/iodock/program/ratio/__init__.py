"""Computes the share of the elapsed time in which a program computed, from times that other tools recorded.
This is step 1 of the method.

Readers (`registry`) return records (`record`), `judge` interprets their ratio, `grouping` sums them, and
`tables` makes answers for the views. `history` proposes a site's threshold from a year of jobs.
"""
