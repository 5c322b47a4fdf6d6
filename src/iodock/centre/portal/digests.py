"""Digests of jobs for programs: `GET /digests/JOBID?format=text|json|html`. An error is one line, because a
script at a job's end may copy the response into the job's output."""

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
# The page contains its own style, and this policy allows nothing else.
_POLICY = "script-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"


def answer(question: Question, number: str, names: Iterable[str]) -> Response:
    """Answers a request for a digest. NAMES: of the parameters in the address. Errors of the client or the
    store never raise, they give an error line."""
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
        # Errors in the collector's files belong in its log, not in the response.
        return refused(503, question.text)
    headers = {**rendering.HEADERS, "Content-Security-Policy": _POLICY}
    return Response(content, 200, headers, KINDS[form])


def refused(status: int, text: Language, why: str = "") -> Response:
    """A response with an error as one line of text."""
    headers = {**rendering.HEADERS, **({"WWW-Authenticate": "Bearer"} if status == 401 else {})}
    said = visible(why) if why else text.gettext(_WHY[status])
    return Response(f"iodock: {said}\n", status, headers, "text/plain; charset=utf-8")
