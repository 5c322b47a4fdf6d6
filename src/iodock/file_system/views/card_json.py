"""Formats a file system's card as JSON. `null` means that a value is not known."""

from __future__ import annotations

import json
from dataclasses import asdict

from iodock.file_system.health.card import Card
from iodock.file_system.health.quotas import Allowance, Quota
from iodock.shared.language import Language
from iodock.shared.sentences import say

SCHEMA = "iodock-file-system-1"


def card_json(card: Card, text: Language) -> str:
    """Formats the card as a JSON document that ends with a line break."""
    mount = card.mount
    typical = None if card.typical is None else asdict(card.typical)
    document = {
        "schema": SCHEMA,
        "folder": card.folder,
        "host": card.host,
        "ts": card.ts,
        "mount_point": mount.point,
        "type": mount.fs_type,
        "kind": card.kind,
        "source": mount.source,
        "servers": list(card.servers),
        "options": [
            {"name": one.name, "value": one.value, "meaning": one.meaning and text.gettext(one.meaning)}
            for one in card.options
        ],
        "space": None if card.space is None else asdict(card.space),
        "stripes": None if card.stripes is None else asdict(card.stripes),
        "quotas": None if card.quotas is None else [_quota(one) for one in card.quotas.known],
        "unknown_quotas": [] if card.quotas is None else [say(one, text) for one in card.quotas.unknown],
        "caches": [
            {"name": one.name, "value": one.value, "meaning": text.gettext(one.meaning)}
            for one in card.caches
        ],
        "typical": typical and {name: value for name, value in typical.items() if value is not None},
        "remarks": [say(one, text) for one in card.remarks],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _quota(quota: Quota) -> dict[str, object]:
    return {
        "kind": quota.kind,
        "owner": quota.owner,
        "bytes": _allowance(quota.bytes),
        "files": _allowance(quota.files),
    }


def _allowance(of: Allowance) -> dict[str, object]:
    left = {"left": of.left, "exact": of.is_exact}
    return {"used": of.used, "soft": of.soft, "hard": of.hard, "grace": of.grace.value, **left}
