"""Synthetic runs of file servers with known true state and culprits, to judge a classifier.

Written from the documents that docs/explanation/server-states.md names, before the classifier existed.
Frozen: tests/simulation/test_episode_series.py has the checksum of the data from the seeds.
"""
