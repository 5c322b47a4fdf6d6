"""Notices about episodes: their recipients, their texts, and the channels through which they are sent."""
