"""Finds remarks on a single curve: how values change with the number of processes, with the I/O size, or with
another setting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from iodock.file_system.health.measurements import Json, Remark
from iodock.file_system.health.remarks import sentences, shape
from iodock.file_system.health.remarks.curves import PROCESSES, SIZE, Curve, Point
from iodock.file_system.health.remarks.sentences import Kind, rate
from iodock.shared.message import Message

Values = Mapping[str, int | float | str]
_BAD = math.log(0.75)
"""Small sizes are bad if they reach less than this share of the level at larger sizes (logarithm)."""


def remarks_on(curve: Curve) -> Iterator[Remark]:
    """Yields remarks on a curve. Points that deviate from the curve are reported first and then removed, so
    that they do not affect the remarks on the shape of the rest."""
    rest = curve
    if curve.axis == PROCESSES and (top := shape.peak(curve)) is not None:
        rest = curve.without(top)
        yield _peak(curve, top, rest)
    elif curve.axis == SIZE and (top := shape.peak(curve)) is not None:
        rest = curve.without(top)
        yield _apart(curve, top)
    for point in shape.apart(rest):
        rest = rest.without(point)
        yield _apart(curve, point)
    if len(rest.points) >= 3:
        shaped = [] if shape.constant(rest) else list(_shape(rest))
        # A curve without a recognised shape may still rise or fall, which `trends` reports.
        yield from shaped or trends(rest)


def _shape(curve: Curve) -> Iterator[Remark]:
    return _by_processes(curve) if curve.axis == PROCESSES else _by_size(curve)


def _by_processes(curve: Curve) -> Iterator[Remark]:
    first, last = curve.at(curve.points[0]), curve.at(curve.points[-1])
    if (slope := shape.proportional(curve)) is not None:
        ends = {"first_processes": first, "last_processes": last}
        evidence = {**ends, "exponent": round(slope, 3), **measured(curve)}
        yield remark(
            curve, Kind.IN_PROPORTION, sentences.IN_PROPORTION, ends, evidence, {PROCESSES: [first, last]}
        )
    elif (down := shape.fall(curve)) is not None:
        yield from [] if _falls_throughout(curve, down) and first > 1 else [_fall(curve, down)]
    elif (flat := shape.plateau(curve)) is not None:
        at = curve.at(flat.start)
        values: Values = {
            PROCESSES: at,
            "growth_factor": math.exp(flat.growth),
            "first_processes": first,
            "last_processes": last,
        }
        evidence = {**values, "level": math.exp(flat.level), **measured(curve)}
        yield remark(curve, Kind.LEVELS_OFF, sentences.LEVELS_OFF, values, evidence, {PROCESSES: at})


def _by_size(curve: Curve) -> Iterator[Remark]:
    down = shape.fall(curve)
    if down is not None:
        if not _falls_throughout(curve, down):
            yield _fall(curve, down)
        return
    flat = shape.plateau(curve)
    start = flat.start if flat is not None else shape.jump(curve)
    if start is None:
        return
    level = flat.level if flat is not None else start.y
    below = max(point.y for point in curve.points if point.x < start.x) - level
    if below > _BAD:
        return
    values = {SIZE: curve.at(start), "below_share": math.exp(below)}
    evidence = {**values, "level": math.exp(level), **measured(curve)}
    yield remark(
        curve,
        Kind.GOOD_ONLY_ABOVE_SIZE,
        sentences.GOOD_ONLY_ABOVE_SIZE,
        values,
        evidence,
        {SIZE: curve.at(start)},
    )


def _falls_throughout(curve: Curve, down: shape.Fall) -> bool:
    trend = shape.trend(curve)
    return down.last is curve.points[0] and trend is not None and not trend.grows


_TRENDS = {
    (PROCESSES, True): sentences.GROWS_BY_PROCESSES,
    (PROCESSES, False): sentences.FALLS_BY_PROCESSES,
    (SIZE, True): sentences.GROWS_BY_SIZE,
    (SIZE, False): sentences.FALLS_BY_SIZE,
}
_VARIES = {PROCESSES: sentences.VARIES_BY_PROCESSES, SIZE: sentences.VARIES_BY_SIZE}


def trends(curve: Curve) -> Iterator[Remark]:
    """Reports that values grow or fall from the first to the last point. If they do neither, it reports the
    lowest and the highest value, if these certainly differ."""
    if (found := shape.trend(curve)) is not None:
        kind = Kind.GROWS_THROUGHOUT if found.grows else Kind.FALLS_THROUGHOUT
        template = _TRENDS.get(
            (curve.axis, found.grows),
            sentences.GROWS_BY_SETTING if found.grows else sentences.FALLS_BY_SETTING,
        )
        ends = {"first": curve.points[0], "last": curve.points[-1]}
    elif (pair := shape.differs(curve)) is not None:
        kind, template = Kind.VARIES, _VARIES.get(curve.axis, sentences.VARIES_BY_SETTING)
        ends = {"low": pair[0], "high": pair[1]}
    else:
        return
    values: dict[str, int | float | str] = {}
    unit = {PROCESSES: "processes", SIZE: "bytes"}.get(curve.axis, "setting")
    if unit == "setting":
        values["setting"] = curve.axis.replace("_", " ")
    for name, point in ends.items():
        values[f"{name}_{unit}"] = curve.at(point)
        values[name] = rate(point.cell)
    at: dict[str, Json] = {curve.axis: [curve.at(one) for one in ends.values()]}
    change = curve.points[-1].y - curve.points[0].y
    values["change_factor"] = math.exp(abs(change))
    yield remark(curve, kind, template, values, {**values, **measured(curve)}, at)


def _fall(curve: Curve, down: shape.Fall) -> Remark:
    by_size = curve.axis == SIZE
    values = {
        curve.axis: curve.at(down.last),
        "last_bytes" if by_size else "last_processes": curve.at(down.end),
        "loss_share": 1.0 - math.exp(-down.loss),
    }
    evidence = {**values, "top": math.exp(down.top), **measured(curve)}
    from_one = not by_size and curve.at(down.last) == 1
    template = (
        sentences.DEGRADES_BY_SIZE
        if by_size
        else sentences.DEGRADES_FROM_ONE
        if from_one
        else sentences.DEGRADES
    )
    return remark(curve, Kind.DEGRADES, template, values, evidence, {curve.axis: curve.at(down.last)})


def _peak(curve: Curve, top: Point, rest: Curve) -> Remark:
    above = top.y - max(point.y for point in rest.points)
    values = {PROCESSES: curve.at(top), "above_factor": math.exp(above)}
    evidence = {**values, "value": top.cell.value, **measured(curve)}
    return remark(
        curve, Kind.PEAKS_ONLY_AT, sentences.PEAKS_ONLY_AT, values, evidence, {PROCESSES: curve.at(top)}
    )


def _apart(curve: Curve, point: Point) -> Remark:
    where = curve.points.index(point)
    neighbours = (curve.points[where - 1].y, curve.points[where + 1].y)
    below = point.y < neighbours[0]
    off = 1.0 - math.exp(point.y - min(neighbours)) if below else math.exp(point.y - max(neighbours)) - 1.0
    by_size = curve.axis == SIZE
    templates = {
        (True, False): sentences.BELOW,
        (False, False): sentences.ABOVE,
        (True, True): sentences.BELOW_BY_SIZE,
        (False, True): sentences.ABOVE_BY_SIZE,
    }
    values = {curve.axis: curve.at(point), "off_share": off}
    evidence = {**values, "value": point.cell.value, **measured(curve)}
    at = {PROCESSES: point.cell.processes, SIZE: point.cell.size_bytes}
    return remark(curve, Kind.APART, templates[below, by_size], values, evidence, at)


def measured(curve: Curve) -> dict[str, Json]:
    """Returns the values of the curve and their spread, with which a reader can check a remark."""
    return {
        "at": [curve.at(point) for point in curve.points],
        "values": [point.cell.value for point in curve.points],
        "spread_share": round(curve.noise.sigma, 4),
    }


def remark(
    curve: Curve,
    kind: Kind,
    template: str,
    values: Values,
    evidence: Mapping[str, Json],
    at: Mapping[str, Json],
) -> Remark:
    """Makes a remark on a curve. The position of the curve is added to AT."""
    return Remark(kind.value, {**curve.place(), **at}, Message(template, values), evidence)
