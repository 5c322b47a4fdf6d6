"""Adds the results of a recording to a digest from a portal."""

from __future__ import annotations

from iodock.centre.views.digest_json import recorded_json, written
from iodock.centre.views.digest_words import of_recording
from iodock.centre.watch.digest import Recorded
from iodock.shared.bounded.documents import from_json
from iodock.shared.errors import AnswerError
from iodock.shared.language import Language
from iodock.shared.sentences import say
from iodock.shared.text import visible


def with_recorded(content: str, form: str, recorded: Recorded, text: Language) -> str:
    """Adds the results of a recording to CONTENT, which is a digest in the form FORM (text or JSON). Raises
    AnswerError if it is not."""
    advice = say(recorded.advice, text) if recorded.advice else ""
    if form == "json":
        return _in_json(content, recorded, advice, text)
    lines = [*of_recording(recorded, text)]
    lines += [(text.gettext("Advice of the recording"), advice)] if advice else []
    said = [text.gettext("{label}: {sentence}", label=label, sentence=what) for label, what in lines]
    return content + "".join(f"  {visible(line)}\n" for line in said)


def _in_json(content: str, recorded: Recorded, advice: str, text: Language) -> str:
    try:
        document = from_json(content)
    except ValueError as error:
        raise AnswerError(f"the portal's answer is not a digest: {error}") from error
    if not isinstance(document, dict):
        raise AnswerError("the portal's answer is not a digest")
    document["recorded"] = recorded_json(recorded, text)
    if advice:
        document["advice"] = advice
    return written(document)
