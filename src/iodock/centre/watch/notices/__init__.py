"""Notices of episodes: recipients, texts, and ways of sending."""
