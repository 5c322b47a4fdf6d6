"""Adds data of the monitor store to the recording of a program: what file servers and the machine did while
the program ran."""
