"""The casebook: patterns of I/O that were found at real centres, as small programs before and after the
change, and cases that a site adds."""

from iodock.program.casebook.case import Case, Version, damaged, every, find, names

__all__ = ["Case", "Version", "damaged", "every", "find", "names"]
