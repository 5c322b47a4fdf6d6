"""What analyses answer of counters: the same questions and columns, asked of profiles in place of calls."""
