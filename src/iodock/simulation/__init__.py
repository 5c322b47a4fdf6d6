"""Simulates a centre with Lustre servers that count the operations of its jobs, for tests and demonstrations.

All data is synthetic, and a tree that is written says so in its file SYNTHETIC. `centre.Centre` is the model,
which works without files; `tree.Tree` writes it as the servers' files; `scenarios` defines the events.
"""
