"""Chooses the language without loading its texts, because loading them takes longer than some commands."""

from __future__ import annotations

import os

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("en", "ja")
"""Languages of iodock. English texts are in the code; the others have a catalogue."""


def chosen(option: str | None, environment: Mapping[str, str] | None = None) -> str:
    """Returns the code of the language to use: OPTION, or else that of the locale if iodock has it, or else
    `en`."""
    return option or _of_locale(os.environ if environment is None else environment)


def _of_locale(environment: Mapping[str, str]) -> str:
    # POSIX defines this order. The first variable that is set decides.
    locale = next(
        (environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), ""
    )
    code = locale.replace("_", ".").replace("@", ".").split(".")[0].lower()
    return code if code in LANGUAGES else "en"
