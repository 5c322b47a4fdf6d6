"""What is known of a file system as text, JSON, CSV, pages and charts."""
