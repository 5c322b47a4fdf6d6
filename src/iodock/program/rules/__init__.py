"""Collects all rules: from the modules in this folder that define one, and from installed packages with an
entry point `iodock.rules`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from iodock.program.rules.base import Rule
from iodock.shared.errors import RequestError, meant
from iodock.shared.plugins import plugins

_NOT_RULES = {
    "asking",
    "base",
    "costs",
    "counted",
    "counter_facts",
    "counter_headline",
    "excluded",
    "facts",
    "gains",
    "headline",
    "languages",
    "mpi_io",
    "one_off",
    "places",
    "search_path",
    "tracing",
    "transfers",
    "typical",
    "work",
    "workers",
}


@cache
def every() -> tuple[Rule, ...]:
    """Returns all rules, sorted by name."""
    own = [module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_RULES]
    rules = [import_module(f"{__name__}.{name}").RULE for name in own]
    rules += [point.load() for point in plugins("iodock.rules")]
    return tuple(sorted(rules, key=lambda rule: rule.name))


def names() -> tuple[str, ...]:
    """Returns the names of all rules."""
    return tuple(rule.name for rule in every())


def find(name: str) -> Rule:
    """Returns the rule of this name. Raises RequestError if there is none."""
    for rule in every():
        if rule.name == name:
            return rule
    raise RequestError(f"no such rule: {name}", meant(name, names(), f"rules: {', '.join(names())}"))
