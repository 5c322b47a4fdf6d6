"""Contains what all charts share: themes, options, frames, and the renderer."""

CHART_FORMATS = ("png", "svg", "pdf", "html")
