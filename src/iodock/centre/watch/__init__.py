"""Watches servers: the state of each, the job that caused it, what to do, and whom to notify."""
