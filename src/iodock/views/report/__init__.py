"""The report: one HTML file that shows where a run's calls, time and bytes went."""
