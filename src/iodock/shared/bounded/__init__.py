"""Reading what iodock did not make itself: files, packed files, outputs of commands and documents, each
with a limit.

Everything that a user, a program or a network hands in comes through here, so that a device without an end, a
line without an end, a packed file that unfolds without an end or a document nested without an end becomes an
error of one line. Files of the kernel (/proc, /sys) and of the package itself are read where they are needed.
"""
