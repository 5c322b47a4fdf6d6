"""Selects the series for the required rows, as selectors of PromQL. The names are those of the agent's
exposition (crates/iodock-agent/src/exposition.rs)."""

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
    """Returns, for each column of `job_io`, the operations and quantities of which the first existing one is
    used, and the operations that another operation includes."""
    from iodock import _native

    columns, within_others = _native.monitor_counted()
    return dict(columns), tuple(within_others)


def of_owners(need: Need) -> list[str]:
    """Selects counters of owners. There is one selector for each label that may contain an owner's id."""
    operations, quantities = _columns(need.metrics)
    family = f"iodock_{_either(need.sources)}_{_either(quantities)}(_total|_created)?"
    common = [_is_like("__name__", family), 'known_by!=""', *_operations(operations)]
    if not need.jobs and not need.session:
        return [_selector(common)]
    jobs = "|".join(need.jobs)
    # A scrape without honor_labels renames the agent's label `job`.
    found = [[_is_like(label, jobs)] for label in ("job", "exported_job") if jobs]
    if need.session and need.session != OTHERS:
        found.append([f"session={quoted(need.session)}"])
    return [_selector([*common, *one]) for one in found]


def of_places(need: Need) -> str:
    """Selects, for each target, the number of owners that are not listed at a reading, and the sum of their
    counters if it is needed."""
    operations, quantities = _columns(need.metrics)
    is_whole = need.session == OTHERS or not (need.jobs or need.session)
    sums = f"|{'|'.join(quantities)}" if is_whole and not need.is_presence else ""
    family = f"iodock_{_either(need.sources)}_other_(owners{sums})"
    return _selector([_is_like("__name__", family), *(_operations(["", *operations]) if operations else [])])


def of_nobody(need: Need) -> str:
    """Selects counters and levels of targets, machines and mounts."""
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


# All functions except `last_over_time` remove the name of a series, which gives the source if no label does.
LOSSES = (
    ("no-answer", "min_over_time", "iodock_agent_source_done"),
    ("refused-files", "max_over_time", "iodock_agent_source_refused_files"),
    ("unreadable-lines", "last_over_time", '{__name__=~"iodock_.+_unreadable_lines"}'),
    ("orphaned-lines", "last_over_time", '{__name__=~"iodock_.+_orphaned_lines"}'),
)
"""Losses of agents: name of the loss, function over an hour, and selector of the series."""


def _columns(metrics: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """Returns the operations and quantities that these columns need. An empty list of operations means all of
    them."""
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
