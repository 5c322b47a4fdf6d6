"""The operator's minute: the state of each server, which job did it, what to do, and who is told."""
