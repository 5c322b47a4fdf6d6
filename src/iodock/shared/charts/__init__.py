"""The look and the rendering of charts, whatever they show: theme, options, frame, renderer."""

CHART_FORMATS = ("png", "svg", "pdf", "html")
