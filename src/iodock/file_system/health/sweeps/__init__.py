"""Sweeps of IOR and mdtest. A sweep runs a benchmark with many combinations of settings, each several times
and in shuffled order."""
