"""Reads input that iodock did not write: files, compressed files, outputs of commands and documents, each
with a limit.

All input from users, programs or the network is read through this package. A device or a line without an end,
a compressed file that expands without an end, or a document that is nested without an end becomes an error of
one line. Files of the kernel (/proc, /sys) and of the package itself are read where they are needed.
"""
