"""Formats a diagnosis as JSON, as docs/reference/findings.schema.json specifies."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from iodock.program.findings import Advice, Diagnosis, Finding
from iodock.program.views.diagnosis_words import headline
from iodock.shared.language import Language
from iodock.shared.sentences import say

SCHEMA = "iodock-findings-2"


def diagnosis_json(diagnosis: Diagnosis, text: Language) -> str:
    """Formats the diagnosis as a JSON document that ends with a line break. Sentences are in the language
    of TEXT."""
    verdict = diagnosis.verdict
    document = {
        "schema": SCHEMA,
        "store": diagnosis.store,
        "verdict": {
            "wall_seconds": verdict.wall_seconds,
            "io_seconds": verdict.io_seconds,
            "io_share": verdict.io_share,
            "waiting_seconds": verdict.waiting_seconds,
            "unseen_calls": verdict.unseen_calls,
            "judges": verdict.judges,
            "alone_seconds": verdict.alone_seconds,
            "text": " ".join(headline(verdict, text)),
        },
        "findings": [_finding(finding, text) for finding in diagnosis.findings],
        "remarks": [say(remark, text) for remark in diagnosis.remarks],
        "next_step": say(diagnosis.next_step, text),
        "losses": [
            {"name": name, "count": count, "cure": text.gettext(cure)}
            for name, count, cure in diagnosis.losses
        ],
        "silent": [{"rule": one.rule, "why": say(one.why, text)} for one in diagnosis.silent],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _finding(finding: Finding, text: Language) -> dict[str, Any]:
    gain = finding.gain
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "confidence": finding.confidence,
        "cost_seconds": finding.cost_seconds,
        "cost_share": finding.cost_share,
        "node_hours": finding.node_hours,
        "gain": None if gain is None else [gain.low_seconds, gain.high_seconds],
        "work_seconds": finding.work_seconds,
        "title": say(finding.title, text),
        "message": say(finding.message, text),
        "meanwhile": [say(one, text) for one in finding.meanwhile],
        "files": list(finding.files),
        "locations": [asdict(one) for one in finding.locations],
        "file_count": finding.file_count,
        "call": finding.call,
        "evidence": dict(finding.evidence),
        "query": finding.query,
        "advice": [_advice(one, text) for one in finding.advice],
        "fine_when": say(finding.fine_when, text),
        "case": finding.case,
    }


def _advice(one: Advice, text: Language) -> dict[str, Any]:
    said = say(one.message, text)
    return {"language": one.language, "library": one.library, "program": one.program, "text": said}
