"""A fake Lustre: a simulated centre whose servers count what its jobs do, for tests and demonstrations.

Everything here is synthetic; a tree that is written says so in its file SYNTHETIC. `centre.Centre` is the
model, and can be used without files; `tree.Tree` writes it as the servers' files; `scenarios` says what
happens.
"""
