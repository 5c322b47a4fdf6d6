"""Synthetic runs of file servers whose true state and culprits are known, to judge a classifier by.

Written from the documents that docs/explanation/server-states.md names, before the classifier was. Frozen:
tests/simulation/test_episode_series.py has the checksum of what the seeds give.
"""
