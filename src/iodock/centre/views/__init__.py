"""Results about a centre as text."""
