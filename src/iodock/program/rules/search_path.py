"""The text of `failed-open-storm` for search paths of many folders, which a loader, an interpreter or a shell
tries without success."""

from __future__ import annotations

from iodock.program.findings import Advice
from iodock.shared.language import N_
from iodock.shared.message import Message

MESSAGE = N_(
    "{count} look-ups in vain along a search path of {folders} folders ({variable}), of which {never} never "
    "had anything; processes: {processes}. Sought was {name}, for one."
)
_ANY = N_("Take folders that never had anything out of {variable}, and put those first that have most.")
_OF_VARIABLE = {
    "LD_LIBRARY_PATH": N_(
        "Link with -Wl,-rpath for the folders that are needed, or put links to all libraries into one folder "
        "and name that alone."
    ),
    "PYTHONPATH": N_("Install the modules into one virtual environment, in place of a folder each."),
    "CLASSPATH": N_("Pack the classes into one jar, in place of many jars and folders."),
    "PERL5LIB": N_("Install the modules into one folder, in place of one each."),
    "PATH": N_("Call programs by their full path in loops."),
}
_ADMINISTRATOR = N_(
    "Modules that add a folder for each package make the path long: offer one folder of links (a view) for "
    "all of them."
)


def advice(variable: str) -> tuple[Advice, ...]:
    """What to do about a long search path, by the variable that contains it."""
    return (
        Advice("any", Message(_ANY, {"variable": variable})),
        Advice("any", Message(_OF_VARIABLE[variable])),
        Advice("administrator", Message(_ADMINISTRATOR)),
    )
