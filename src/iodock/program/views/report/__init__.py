"""The report: one HTML file that shows where a run's calls, time and bytes went."""

from iodock.program.views.report.page import Report, render
from iodock.program.views.report.run import report_html, report_of

__all__ = ["Report", "render", "report_html", "report_of"]
