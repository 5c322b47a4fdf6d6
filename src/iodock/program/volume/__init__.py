"""Step 2 of the method: how many bytes a program moved, against what its files hold, without tracing it."""
