"""The collector's web pages and the entry point for agents. It computes nothing itself."""
