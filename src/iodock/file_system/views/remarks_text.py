"""Formats a remark as a line of text, which consists of its subject and its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iodock.file_system.health.measurements import Cache, Json, Measurements, Remark
from iodock.file_system.health.remarks.whole import tested
from iodock.file_system.views.measurements_words import cache_text, operation_text, test_text, variant_text
from iodock.shared.language import N_, Language
from iodock.shared.sentences import say
from iodock.shared.units import BYTES

_LISTED = 4


def none_text(measurements: Measurements, text: Language) -> str:
    """Returns the text that is shown if there are no remarks. It lists what was compared and what was not
    tested, so that users do not take the absence of remarks for a good result."""
    known = tested(measurements)
    left_out = text.gettext(N_("; ")).join(say(one, text) for one in known.untested)
    if not known.operations:
        if not measurements.cells:
            return text.gettext(N_("No remarks: nothing was measured"))
        return text.gettext(
            N_("No remarks, because nothing could be compared. Not tested: {what}"), what=left_out
        )
    names = dict.fromkeys(operation_text(operation, text) for _, operation in known.operations)
    parts = [text.listed(names)]
    if known.sizes:
        parts.append(_span([BYTES.text(size) for size in known.sizes], text))
    if known.processes:
        span = _span([f"{number:,}" for number in known.processes], text)
        parts.append(text.gettext(N_("processes {processes}"), processes=span))
    if known.repeats:
        fewest, most = known.repeats
        counts = f"{fewest:,}" if fewest == most else f"{fewest:,}-{most:,}"
        parts.append(text.gettext(N_("repeats {count}"), count=counts))
    said = text.gettext(
        N_("No remarks: no change of 30 % or more beyond the spread was found in {compared}"),
        compared=text.listed(parts),
    )
    if not left_out:
        return said
    return text.gettext(N_("{said}. Not tested: {what}"), said=said, what=left_out)


def remark_text(remark: Remark, text: Language, common: Mapping[str, str] | None = None) -> str:
    """Formats a remark, such as `large transfer, write, 1 MiB: levels off at 100 processes: ...`. Properties
    in COMMON are left out, because all cells share them."""
    sentence = say(remark.message, text)
    if "test" not in remark.at or "operation" not in remark.at or not remark.message.values:
        # The remark was read from a JSON file, in which its text is already complete.
        return sentence
    return text.gettext(N_("{subject}: {sentence}"), subject=subject(remark, text, common), sentence=sentence)


def subject(remark: Remark, text: Language, common: Mapping[str, str] | None = None) -> str:
    """Describes which cells a remark is about. Sizes and processes that its sentence mentions are left
    out."""
    at, values = remark.at, remark.message.values
    parts = [test_text(str(at["test"]), text), operation_text(str(at["operation"]), text)]
    if at.get("cache") is not None:
        parts.append(cache_text(Cache(str(at["cache"])), text))
    sizes, processes = _numbers(at.get("size_bytes")), _numbers(at.get("processes"))
    if sizes and not {"size_bytes", "first_bytes"} & set(values):
        parts.append(_span([BYTES.text(size) for size in sizes], text))
    if processes and not {"processes", "first_processes"} & set(values):
        span = _span([f"{number:,}" for number in processes], text)
        parts.append(text.gettext(N_("processes {processes}"), processes=span))
    variant = at.get("variant")
    if isinstance(variant, dict):
        parts.append(variant_text({name: str(value) for name, value in variant.items()}, common or ()))
    return text.listed(part for part in parts if part)


def _numbers(value: Json) -> list[int]:
    several = value if isinstance(value, list) else [value]
    return sorted({one for one in several if isinstance(one, int)})


def _span(shown: Sequence[str], text: Language) -> str:
    if len(shown) <= _LISTED:
        return text.listed(shown)
    return text.gettext(N_("{first} to {last}"), first=shown[0], last=shown[-1])
