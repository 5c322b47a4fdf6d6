"""Simulates episodes of file servers with known true states and culprits, to measure the quality of the
classifier.

They were written from the documents that docs/explanation/server-states.md names, before the classifier
existed. They are frozen: tests/simulation/test_episode_series.py has the checksum of the data from the seeds.
"""
