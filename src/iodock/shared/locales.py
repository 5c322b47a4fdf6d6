"""Determines the user's language without loading its texts. Loading them takes longer than some commands."""

from __future__ import annotations

import os

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Mapping

LANGUAGES = ("en", "ja")
"""Languages of iodock. English texts are in the code; the others have a catalogue."""


def chosen(option: str | None, environment: Mapping[str, str] | None = None) -> str:
    """Returns the code of the language to use. OPTION takes precedence over the locale in ENVIRONMENT.
    Returns `en` if iodock does not support the language of the locale."""
    return option or _of_locale(os.environ if environment is None else environment)


def _of_locale(environment: Mapping[str, str]) -> str:
    # POSIX defines the order of these variables. The first one that is set determines the locale.
    locale = next(
        (environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), ""
    )
    code = locale.replace("_", ".").replace("@", ".").split(".")[0].lower()
    return code if code in LANGUAGES else "en"
