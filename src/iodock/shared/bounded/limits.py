"""Lists the size limits of all kinds of input. Limits that users may reach are defined only here."""

from __future__ import annotations

from dataclasses import dataclass

from iodock.shared.errors import IodockError

KIB, MIB = 1 << 10, 1 << 20
MOST_DEPTH = 100
"""Largest number of nested lists and objects. Real documents have fewer than ten levels."""
MOST_VALUES = 3_000_000
"""Largest number of values in one document. Each takes up to 230 bytes of memory."""
MOST_LINES = 4_000_000
"""Largest number of lines of a file whose lines are all held in memory."""
MOST_LINE_BYTES = 16 * MIB
"""Largest length of a line in files that are read line by line, whatever their size."""
MOST_UNPACKING_BYTES = 128 * MIB
"""Largest memory for decompressing xz. Its strongest setting, -9, needs 65 MiB."""
WRITER_PATIENCE_S = 10.0
"""Time to wait for a named pipe that no program has opened for writing."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The size limit of one kind of input."""

    what: str
    """Name of the input in messages, such as `a settings file`."""
    size_bytes: int
    hint: str = "give the right file"

    def exceeded(self, where: object, error: type[IodockError]) -> IodockError:
        """Returns the error for input that exceeds the limit. WHERE names the input."""
        return error(f"{where}: larger than {_size(self.size_bytes)}, the limit for {self.what}", self.hint)


SETTINGS = Limit("a settings file", MIB)
PLAN = Limit("a file that describes a sweep, a workload or a case", MIB)
TOKENS = Limit("a file of tokens", 4 * MIB)
SECRET = Limit("a token or a password", 64 * KIB)
ADDRESSES = Limit("a list of addresses", 4 * MIB)
RESULT = Limit("a benchmark's result", 64 * MIB, "give the benchmark's output, not its data")
KEPT_RESULTS = Limit("the results of an interrupted check-up", 64 * MIB, "remove this file and begin again")
COUNTERS = Limit("counters of a storage array", 256 * MIB, "import one day at a time")
SAR = Limit("readings of sar", 256 * MIB, "import one day at a time")
TIMES_AT_ONCE = Limit(
    "times that can't be read piece by piece", 256 * MIB, "split the file, or name a file instead of a pipe"
)
MANIFEST = Limit("a store's manifest", 16 * MIB, "import or record again into a new store")
CATALOGUE = Limit("a monitor store's catalogue", 64 * MIB, "give the folder that monitor serve writes")
PROBES = Limit("a month of probes of one host", 256 * MIB, "move older files out of the folder")
NOTE = Limit("a note of iodock", 64 * KIB)
ANSWER = Limit("a server's answer", MIB, "is it the right server?")
OUTPUT = Limit("a command's output", 16 * MIB)


def _size(size_bytes: int) -> str:
    return f"{size_bytes // MIB} MiB" if size_bytes >= MIB else f"{size_bytes // KIB} KiB"
