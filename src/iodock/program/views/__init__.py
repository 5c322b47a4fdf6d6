"""What is known of a run as text, JSON, CSV, pages and charts."""
