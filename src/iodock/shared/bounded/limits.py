"""How large each kind of input may be. Every limit that users may meet stands here."""

from __future__ import annotations

from dataclasses import dataclass

from iodock.shared.errors import IodockError

KIB, MIB = 1 << 10, 1 << 20
MOST_DEPTH = 100
"""Lists and objects inside one another: real documents have fewer than ten."""
MOST_VALUES = 3_000_000
"""In one document: a value takes up to 230 bytes of memory."""
MOST_LINES = 4_000_000
"""Of a file whose lines are all held at once."""
MOST_LINE_BYTES = 16 * MIB
"""Of one line, where a file is read line by line and may have any size."""
MOST_UNPACKING_BYTES = 128 * MIB
"""Memory for unpacking xz: its strongest setting, -9, needs 65 MiB."""
WRITER_PATIENCE_S = 10.0
"""For a named pipe that no program has opened for writing."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How large one kind of input may be."""

    what: str
    """Of what, for the message: `a settings file`."""
    size_bytes: int
    hint: str = "name the right file"

    def exceeded(self, where: object, error: type[IodockError]) -> IodockError:
        """The error for input that is larger."""
        return error(f"{where}: larger than {_size(self.size_bytes)}, the limit for {self.what}", self.hint)


SETTINGS = Limit("a settings file", MIB)
PLAN = Limit("a file that describes a sweep, a workload or a case", MIB)
TOKENS = Limit("a file of tokens", 4 * MIB)
SECRET = Limit("a token or a password", 64 * KIB)
ADDRESSES = Limit("a list of addresses", 4 * MIB)
RESULT = Limit("a benchmark's result", 64 * MIB, "name the benchmark's output, not its data")
KEPT_RESULTS = Limit("the results of an interrupted check-up", 64 * MIB, "remove it and begin again")
COUNTERS = Limit("counters of a storage array", 256 * MIB, "import one day at a time")
SAR = Limit("readings of sar", 256 * MIB, "import one day at a time")
TIMES_AT_ONCE = Limit(
    "times that can't be read piece by piece", 256 * MIB, "split the file, or name a file instead of a pipe"
)
MANIFEST = Limit("a store's manifest", 16 * MIB, "import or record again into a new store")
CATALOGUE = Limit("a monitor store's catalogue", 64 * MIB, "name the folder that monitor serve writes")
PROBES = Limit("a month of probes of one host", 256 * MIB, "move older files out of the folder")
NOTE = Limit("a note of iodock", 64 * KIB)
ANSWER = Limit("a server's answer", MIB, "is it the right server?")
OUTPUT = Limit("a command's output", 16 * MIB)


def _size(size_bytes: int) -> str:
    return f"{size_bytes // MIB} MiB" if size_bytes >= MIB else f"{size_bytes // KIB} KiB"
