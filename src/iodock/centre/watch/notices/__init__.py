"""Notices: who is told of an episode, in which words, and how it is sent."""
