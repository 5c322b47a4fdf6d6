"""Makes the report, one HTML file that shows the calls, time and bytes of a run."""

from iodock.program.views.report.page import Report, render
from iodock.program.views.report.run import report_html, report_of

__all__ = ["Report", "render", "report_html", "report_of"]
