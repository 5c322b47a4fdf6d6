"""Shows a store of counters on a page of its own (docs/decisions/0041). The store has no calls, so the
page shows the counters without judging them."""

from iodock.program.views.counters.page import counters_html

__all__ = ["counters_html"]
