"""Contains texts of `failed-open-storm` for search paths of many folders, in which a loader, an
interpreter or a shell looks for a file without success."""

from __future__ import annotations

from iodock.program.findings import Advice
from iodock.shared.language import N_
from iodock.shared.message import Message

MESSAGE = N_(
    "{count} failed look-ups along a search path of {folders} folders ({variable}), {never} of which "
    "never had a match; processes: {processes}. Example: {name}."
)
_ANY = N_("Remove folders that never had a match from {variable}, and put folders with most matches first.")
_OF_VARIABLE = {
    "LD_LIBRARY_PATH": N_(
        "Link with -Wl,-rpath for the folders that are needed, or put links to all libraries into one folder "
        "and name that alone."
    ),
    "PYTHONPATH": N_("Install the modules into one virtual environment, instead of one folder each."),
    "CLASSPATH": N_("Pack the classes into one jar, in place of many jars and folders."),
    "PERL5LIB": N_("Install the modules into one folder, instead of one folder each."),
    "PATH": N_("Call programs by their full path in loops."),
}
_ADMINISTRATOR = N_(
    "Modules that add a folder for each package make the path long: offer one folder of links (a view) for "
    "all of them."
)


def advice(variable: str) -> tuple[Advice, ...]:
    """Returns advice on a long search path. VARIABLE is the environment variable that contains it."""
    return (
        Advice("any", Message(_ANY, {"variable": variable})),
        Advice("any", Message(_OF_VARIABLE[variable])),
        Advice("administrator", Message(_ADMINISTRATOR)),
    )
