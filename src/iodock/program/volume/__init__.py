"""Step 2 of the method: the bytes that a program moved, compared with the sizes of its files, without tracing
it."""
