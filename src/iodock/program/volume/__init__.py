"""Step 2 of the method: compares the bytes that a program moved with the sizes of its files, without
tracing the program."""
