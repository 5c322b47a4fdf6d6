"""Parts that analyses share: filters, grouping keys, and the one SELECT that counts calls."""
