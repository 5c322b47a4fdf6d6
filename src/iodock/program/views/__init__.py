"""Shows a run and its results as text, JSON, CSV, pages and charts."""
