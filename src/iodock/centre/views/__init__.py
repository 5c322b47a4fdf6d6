"""What is known of a centre as text."""
