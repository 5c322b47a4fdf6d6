"""Answers requests of programs for digests of jobs: `GET /digests/JOBID?format=text|json|html`. An error
message is one line, because a script at a job's end may copy the response into the job's output."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from iodock.centre.monitor.usual import Verdict
from iodock.centre.portal import rendering
from iodock.centre.portal.forms import check_names
from iodock.centre.portal.shown.digest import WORDS, Which, digest
from iodock.centre.portal.shown.page import NotThere, Question
from iodock.centre.views.digests import FORMS, KINDS
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import N_, Language
from iodock.shared.text import visible

_WHY = {
    400: N_("invalid request"),
    401: N_("a token is needed"),
    404: N_("you have no such job"),
    503: N_("the store can't be read at the moment"),
}
# A digest in HTML contains its own style sheet. The policy forbids scripts, forms and frames.
_POLICY = "script-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"


def answer(question: Question, number: str, names: Iterable[str]) -> Response:
    """Answers a request for a digest. NAMES are the names of the parameters in the address. If the request is
    invalid or the store can't be read, returns a line with the error and raises no exception."""
    asked = question.asked
    try:
        check_names(names, WORDS)
        _ = asked.language
        form = asked.choice("format", tuple(FORMS), "text")
        is_for_slow = asked.choice("only", ("slower",), "") == "slower"
        found = digest(question, number or asked.text("id"), Which.asked(asked))
        if is_for_slow and (found.judgement is None or found.judgement.verdict is not Verdict.SLOWER):
            return Response(None, 204, rendering.HEADERS)
        content = FORMS[form](found, question.text)
    except NotThere:
        return refused(404, question.text)
    except RequestError as error:
        return refused(400, question.text, str(error))
    except IodockError:
        # The collector's log has the reason. The response does not contain it, because it may name paths of
        # the collector's files.
        return refused(503, question.text)
    headers = {**rendering.HEADERS, "Content-Security-Policy": _POLICY}
    return Response(content, 200, headers, KINDS[form])


def refused(status: int, text: Language, why: str = "") -> Response:
    """Returns a response with an error as one line of text. WHY is the reason; if it is empty, a general text
    for the status is used."""
    headers = {**rendering.HEADERS, **({"WWW-Authenticate": "Bearer"} if status == 401 else {})}
    said = visible(why) if why else text.gettext(_WHY[status])
    return Response(f"iodock: {said}\n", status, headers, "text/plain; charset=utf-8")
