"""Formats a digest as JSON, whose content docs/how-to/job-digest.md describes."""

from __future__ import annotations

import json
from dataclasses import asdict

from iodock.centre.views.digest_words import advice, headline, lines, times_slower
from iodock.centre.watch.digest import Digest, Recorded, Sums
from iodock.shared.language import Language
from iodock.shared.sentences import say

SCHEMA = "iodock-digest-1"


def digest_json(digest: Digest, text: Language) -> str:
    """Formats a digest as JSON that ends with a line break. Sentences are in the language TEXT. A value is
    null if it is unknown."""
    troubles = digest.troubles
    document = {
        "schema": SCHEMA,
        "id": digest.id, "job": digest.job, "name": digest.name, "users": list(digest.users),
        "begin_ts": digest.begin, "end_ts": digest.end, "seconds": digest.seconds, "over": digest.is_over,
        "written": digest.written, "started_again": digest.again, "earlier_ts": digest.earlier,
        "synthetic": digest.is_synthetic, "file_systems": list(digest.file_systems),
        "counted": [_sums(one) for one in digest.sums],
        "compared": _compared(digest),
        "servers": None if troubles is None else [asdict(one) for one in troubles],
        "recorded": recorded_json(digest.recorded, text) if digest.recorded else None,
        "headline": headline(digest, text) or None,
        "advice": advice(digest, text) or None,
        "text": [{"label": label, "sentence": sentence} for label, sentence in lines(digest, text)],
    }  # fmt: skip
    return written(document)


def written(document: object) -> str:
    """Formats JSON so that it is safe to print in a terminal: direction marks and unprintable characters are
    escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    return "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in text)


def _sums(sums: Sums) -> dict[str, object]:
    return {
        "place": sums.place, "exact": sums.is_exact,
        "read_bytes": _whole(sums.read_bytes), "write_bytes": _whole(sums.write_bytes),
        "reads": _whole(sums.reads), "writes": _whole(sums.writes), "metadata": _whole(sums.metadata),
        "operations": {name: _whole(count) for name, count in sums.operations},
    }  # fmt: skip


def _compared(digest: Digest) -> dict[str, object] | None:
    judgement = digest.judgement
    if judgement is None or digest.run is None:
        return None
    return {
        "verdict": judgement.verdict.name.lower(), "runs": len(judgement.compared),
        "seconds": digest.run.seconds, "usual_s": judgement.usual_s, "spread_s": judgement.spread_s,
        "limit_s": judgement.limit_s, "times": times_slower(digest),
    }  # fmt: skip


def recorded_json(recorded: Recorded, text: Language) -> dict[str, object]:
    """Formats the results of a recording."""
    finding = recorded.finding
    return {
        "store": recorded.store, "wall_seconds": recorded.wall_seconds, "io_share": recorded.io_share,
        "whole": recorded.is_whole,
        "finding": {"title": say(finding[0], text), "seen": say(finding[1], text)} if finding else None,
    }  # fmt: skip


def _whole(value: float | None) -> float | int | None:
    """Rounds a number to six decimals, and converts it to an integer if it is whole. Counts are sums of
    shares, so they are floating-point numbers that are usually whole."""
    if value is None:
        return None
    rounded = round(value, 6)
    return int(rounded) if rounded.is_integer() else rounded
