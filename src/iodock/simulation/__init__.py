"""A fake Lustre: a simulated centre whose servers count the operations of its jobs, for tests and
demonstrations.

All data is synthetic; a tree written by it says so in its file SYNTHETIC. `centre.Centre` is the model, which
works without files; `tree.Tree` writes it as the servers' files; `scenarios` defines the events.
"""
