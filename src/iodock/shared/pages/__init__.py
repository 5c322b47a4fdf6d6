"""HTML pages that stand alone: markup, style sheets, and how a page is put together."""
