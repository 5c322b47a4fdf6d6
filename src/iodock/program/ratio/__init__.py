"""Step 1 of the method: the share of the elapsed time in which a program computed, from times that other
tools recorded.

Readers (`registry`) return records (`record`); `judge` interprets their ratio, `grouping` sums them, `tables`
builds answers for the views, and `history` finds a site's threshold in a year of jobs.
"""
