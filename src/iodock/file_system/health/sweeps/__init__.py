"""Sweeps of IOR and mdtest: matrices of settings, each cell run several times in shuffled order."""
