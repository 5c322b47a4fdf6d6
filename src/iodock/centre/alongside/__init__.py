"""What the store knows of the time in which a recorded program ran elsewhere."""
