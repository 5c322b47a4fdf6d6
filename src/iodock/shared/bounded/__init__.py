"""Reads files, compressed files, documents and the output of commands, each up to a size limit.

All input that comes from users, programs or the network is read through this package. Without limits, an
endless device or line, a compressed file that expands to many times its size, or a deeply nested document
could use up all memory. With them, it causes an error message of one line. Files of the kernel (/proc, /sys)
and of iodock itself are read without this package.
"""
