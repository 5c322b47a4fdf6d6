"""Self-contained HTML pages: markup, style sheets, and how a page is assembled."""
