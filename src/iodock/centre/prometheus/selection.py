"""Builds PromQL selectors of the series that a query needs. The agent defines the names of the series in
crates/iodock-agent/src/exposition.rs."""

from __future__ import annotations

from functools import cache

from iodock.shared.engine.need import OTHERS, Need, literally

QUANTITIES = {
    "operations": ("1", ""), "bytes": ("bytes", "_bytes"), "time_seconds": ("us", "_time"),
    "amount": ("1", "_sum"), "by_size": ("1", "_by_size"), "by_pages": ("1", "_by_pages"),
    "by_in_flight": ("1", "_by_in_flight"), "by_offset": ("1", "_by_offset"),
    "by_latency": ("1", "_by_latency"), "level": (None, ""),
}  # fmt: skip
"""Maps the ending of a family's name to the unit, and to the ending of the metric in `targets`."""
_OF_ANY = {"other": "operations", "time_us": "time_seconds"}
_OF_JOBS = ("operations", "bytes", "time_seconds")
HOST = 'iodock_agent_source_done{source="process-io"}'
"""A series that every agent has, whatever its machine contains."""


@cache
def counted() -> tuple[dict[str, list[tuple[str, str]]], tuple[str, ...]]:
    """Returns the operations that each column of `job_io` counts, with their quantities; the first one that a
    source has is used. Also returns the operations that another operation includes."""
    from iodock import _native

    columns, within_others = _native.monitor_counted()
    return dict(columns), tuple(within_others)


def of_owners(need: Need) -> list[str]:
    """Returns selectors of the counters of owners. If certain jobs are needed, there is one selector for each
    label that may contain the job's id."""
    operations, quantities = _columns(need.metrics)
    family = f"iodock_{_either(need.sources)}_{_either(quantities)}(_total|_created)?"
    common = [_is_like("__name__", family), 'known_by!=""', *_operations(operations)]
    if not need.jobs and not need.session:
        return [_selector(common)]
    jobs = "|".join(need.jobs)
    # If a scrape does not set honor_labels, Prometheus renames the agent's label `job` to `exported_job`.
    found = [[_is_like(label, jobs)] for label in ("job", "exported_job") if jobs]
    if need.session and need.session != OTHERS:
        found.append([f"session={quoted(need.session)}"])
    return [_selector([*common, *one]) for one in found]


def of_places(need: Need) -> str:
    """Returns a selector of the number of owners that the agent does not list at a reading, and of the sum of
    their counters if the query needs it."""
    operations, quantities = _columns(need.metrics)
    is_whole = need.session == OTHERS or not (need.jobs or need.session)
    sums = f"|{'|'.join(quantities)}" if is_whole and not need.is_presence else ""
    family = f"iodock_{_either(need.sources)}_other_(owners{sums})"
    return _selector([_is_like("__name__", family), *(_operations(["", *operations]) if operations else [])])


def of_nobody(need: Need) -> str:
    """Returns a selector of the counters and levels of targets, machines and mounts, which have no owner."""
    family = f"iodock_{_either(need.sources)}_{_either(tuple(QUANTITIES))}(_total|_created)?"
    if not need.metrics:
        return _selector([_is_like("__name__", family), 'known_by=""'])
    operations, quantities = set(need.metrics), {"operations", "bytes"}
    for quantity, (_, ending) in QUANTITIES.items():
        for metric in need.metrics:
            if ending and metric.endswith(ending):
                operations.add(metric.removesuffix(ending))
                quantities.add(quantity)
    family = f"iodock_{_either(need.sources)}_{_either(tuple(sorted(quantities)))}(_total|_created)?"
    return _selector([_is_like("__name__", family), 'known_by=""', *_operations(sorted(operations))])


# Every function except `last_over_time` removes the name of a series. The last two losses have no label for
# their source, which is in the name, so they need this function.
LOSSES = (
    ("no-answer", "min_over_time", "iodock_agent_source_done"),
    ("refused-files", "max_over_time", "iodock_agent_source_refused_files"),
    ("unreadable-lines", "last_over_time", '{__name__=~"iodock_.+_unreadable_lines"}'),
    ("orphaned-lines", "last_over_time", '{__name__=~"iodock_.+_orphaned_lines"}'),
)
"""Losses of agents: name of the loss, function over an hour, and selector of the series."""


def _columns(metrics: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """Returns the operations and quantities that these columns are computed from. An empty list of operations
    means all operations."""
    columns, _ = counted()
    if not metrics:
        return [], _OF_JOBS
    sources = [source for metric in metrics for source in columns.get(metric, [])]
    quantities = {quantity for _, quantity in sources}
    # The columns in _OF_ANY are sums over operations of any name.
    quantities |= {kind for column, kind in _OF_ANY.items() if column in metrics}
    is_any = bool(_OF_ANY.keys() & set(metrics))
    return [] if is_any else sorted({operation for operation, _ in sources}), tuple(sorted(quantities))


def _operations(names: list[str]) -> list[str]:
    return [_is_like("operation", "|".join(map(literally, names)))] if names else []


def _either(names: tuple[str, ...]) -> str:
    return f"({'|'.join(names)})" if names else ".+"


def _is_like(label: str, pattern: str) -> str:
    return f"{label}=~{quoted(pattern)}"


def _selector(matchers: list[str]) -> str:
    return "{" + ",".join(matchers) + "}"


def quoted(text: str) -> str:
    """Quotes a text as a PromQL string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
