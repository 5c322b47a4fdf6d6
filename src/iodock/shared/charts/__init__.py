"""How a chart looks and is drawn, whatever it shows: theme, options, frame, renderer."""

CHART_FORMATS = ("png", "svg", "pdf", "html")
