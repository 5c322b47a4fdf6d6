"""Makes self-contained HTML pages: builds markup, and combines it with style sheets and scripts."""
