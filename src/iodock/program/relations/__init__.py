"""Contains the SQL that analyses share: filters, grouping keys, and the SELECT that counts calls."""
