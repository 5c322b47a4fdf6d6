"""Self-contained HTML pages: markup, style sheets, and the assembly of a page."""
