"""Exports a run in the formats of other programs: flame graphs, profilers, viewers of traces."""

from iodock.program.exports.formats import FORMATS, WEIGHTS, export

__all__ = ["FORMATS", "WEIGHTS", "export"]
