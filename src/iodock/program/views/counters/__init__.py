"""What counters show on a page of their own (docs/decisions/0041): no calls, and nothing judged."""

from iodock.program.views.counters.page import counters_html

__all__ = ["counters_html"]
