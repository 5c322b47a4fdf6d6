"""Step 1 of the method: how much of the elapsed time a program computed, from times that others wrote down.

Readers (`registry`) give records (`record`); `judge` reads their ratio, `grouping` adds them up, `tables`
makes answers for the views, and `history` finds a site's threshold in a year of jobs.
"""
