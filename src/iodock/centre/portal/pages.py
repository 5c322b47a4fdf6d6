"""Implements the portal's pages with their addresses, access rights and responses to errors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from iodock.centre.monitor.access import Access, Visitor
from iodock.centre.portal import digests, rendering, session
from iodock.centre.portal.forms import Asked, check_names, with_values
from iodock.centre.portal.shown import (
    actions,
    agents,
    events,
    file_systems,
    heavy,
    job,
    jobs,
    machine,
    now,
    use,
)
from iodock.centre.portal.shown.page import NotThere, Question, Remembered, Shown, Site
from iodock.centre.portal.tables import Table, as_csv, as_json
from iodock.centre.store import MonitorTables
from iodock.centre.watch.watching import Watching
from iodock.shared.errors import AnswerError, IodockError, RequestError
from iodock.shared.language import LANGUAGES, N_, Language, language_in

AT_ONCE = 4
"""Number of queries on the store that run at the same time. Others wait."""
_SECTIONS = (
    ("/now", N_("Now")),
    ("/", N_("File systems")),
    ("/jobs", N_("Jobs")),
    ("/heavy", N_("Heavy jobs")),
    ("/events", N_("Events")),
    ("/use", N_("Use")),
)
"""Menu entries: address and title."""
_OPERATORS_SECTIONS = (*_SECTIONS, ("/agents", N_("Quiet")))
_ACTIONS = ("/actions", N_("Actions"))
"""Menu entry that is shown only to operators, and only if the collector keeps episodes."""

Show = Callable[[Question], Shown]
Choose = Callable[[Request], tuple[Show, tuple[str, ...]]]
"""Returns the function that shows a page, and the parameters that the page uses."""
Endpoint = Callable[[Request], Awaitable[Response]]


class Pages:
    """The portal's pages of one store."""

    def __init__(self, store: MonitorTables, access: Access, site: Site | None = None) -> None:
        self._store, self._access, self._site = store, access, site or Site()
        self._sessions = session.Sessions(access)
        own = Watching(store, self._site.ids, self._site.limits, self._site.names_jobs)
        self._state = Remembered(self._site.watching or own)
        self._turns: anyio.CapacityLimiter | None = None

    def routes(self) -> list[Route]:
        """Returns the routes of all pages. The tables of a page can be downloaded from its address with
        `?format=csv|json&table=NAME`."""
        shows = {
            "/now": now,
            "/": file_systems,
            "/jobs": jobs,
            "/heavy": heavy,
            "/events": events,
            "/use": use,
            "/agents": agents,
        }
        return [
            *(Route(path, self._page(path, _always(one.shown, one.WORDS))) for path, one in shows.items()),
            Route("/machines", self._page("/", _always(machine.shown, machine.WORDS))),
            Route("/jobs/{id:path}", self._page("/jobs", _job)),
            Route("/digests/{id:path}", self._digest),
            Route("/actions", self._page("/actions", _always(actions.shown, actions.WORDS))),
            Route("/actions/{number:int}/{answer}", self._answered, methods=["POST"]),
            Route("/login", self._come_in, methods=["GET", "POST"]),
            Route("/logout", self._leave, methods=["POST"]),
            Route("/static/{name}", _static),
        ]

    def _page(self, section: str, choose: Choose) -> Endpoint:
        async def answer(request: Request) -> Response:
            visitor = self._sessions.visitor(request)
            if visitor is None:
                return self._stranger(request)
            ask = partial(self._answer, request, visitor, section, *choose(request))
            return await to_thread.run_sync(ask, limiter=self._limiter())

        return answer

    def _answer(
        self, request: Request, visitor: Visitor, section: str, show: Show, words: tuple[str, ...]
    ) -> Response:
        """Answers a request for a page. If the request is invalid or the store can't be read, returns an
        error page and raises no exception."""
        asked = Asked(request.url.path, dict(request.query_params), time.time_ns())
        text = language_of(request)
        try:
            check_names([name for name, _ in request.query_params.multi_items()], words)
            _ = asked.language
            form = asked.format
            question = Question(self._store, self._site, asked, visitor, text, self._state)
            shown = show(question)
            if form != "html":
                return _download(shown, asked.values.get("table", ""), form)
            return self._html(request, question, shown, section)
        except NotThere:
            return self.message(request, 404, visitor)
        except RequestError as error:
            return self.message(request, 400, visitor, error)
        except AnswerError as error:
            # The page shows the reason only to operators, because only they can solve the problem.
            return self.message(request, 503, visitor, error if visitor.may_see_all else None)
        except IodockError:
            # The collector's log has the reason. The page does not show it, because it may contain paths of
            # the collector's files.
            return self.message(request, 503, visitor)

    async def _digest(self, request: Request) -> Response:
        """Answers a request for a digest. Digests are requested by programs, so an unauthenticated client
        gets a line of text and not a login form."""
        visitor = self._sessions.reader(request)
        if visitor is None:
            return digests.refused(401, language_of(request))
        asked = Asked(request.url.path, dict(request.query_params), time.time_ns())
        question = Question(self._store, self._site, asked, visitor, language_of(request), self._state)
        names = [name for name, _ in request.query_params.multi_items()]
        answer = partial(digests.answer, question, request.path_params["id"], names)
        return await to_thread.run_sync(answer, limiter=self._limiter())

    def _limiter(self) -> anyio.CapacityLimiter:
        if self._turns is None:
            self._turns = anyio.CapacityLimiter(AT_ONCE)
        return self._turns

    def _html(self, request: Request, question: Question, shown: Shown, section: str) -> Response:
        layout = "fragment.html" if request.headers.get("x-fragment") == "1" else "base.html"
        content = rendering.render(
            shown.template, question.text, layout=layout, shown=shown, question=question,
            asked=question.asked,
            section=section, **self._frame(request, question.visitor), **shown.more,
        )  # fmt: skip
        return _page_of(content)

    def _frame(self, request: Request, visitor: Visitor | None) -> dict[str, object]:
        sees_all = visitor is not None and visitor.may_see_all
        sections = _OPERATORS_SECTIONS if sees_all else _SECTIONS
        if sees_all and self._site.responder is not None:
            sections = (*sections, _ACTIONS)
        token = self._sessions.form_token(request, visitor) if visitor else ""
        return {
            "sections": sections, "visitor": visitor,
            "form_token": token, "can_leave": self._sessions.is_in_one(request),
            "languages": LANGUAGES, "own": _own(request), "is_open": self._access.is_open,
            "is_synthetic": self._site.is_synthetic, "limits": self._store.limits,
        }  # fmt: skip

    async def _answered(self, request: Request) -> Response:
        """Processes a form with an operator's decision about a proposed action."""
        visitor = self._sessions.visitor(request)
        if visitor is None:
            return self._stranger(request)
        fields = await session.form(request)
        if fields is None or not self._sessions.is_own_form(request, visitor, fields):
            return self.message(request, 403, visitor)
        number, answer = int(request.path_params["number"]), str(request.path_params["answer"])
        give = partial(actions.answer, self._site.responder, self._access.is_open, visitor, number, answer)
        try:
            await to_thread.run_sync(give)
        except NotThere:
            return self.message(request, 404, visitor)
        except RequestError as error:
            return self.message(request, 400, visitor, error)
        except IodockError:
            return self.message(request, 503, visitor)
        return RedirectResponse(with_values("/actions", _own(request)), 303, rendering.HEADERS)

    def message(
        self, request: Request, status: int, visitor: Visitor | None, error: IodockError | None = None
    ) -> Response:
        """Returns a page that shows an error."""
        content = rendering.render(
            "message.html", language_of(request), layout="base.html", status=status, error=error, section="",
            asked=Asked(request.url.path, {}, time.time_ns()), **self._frame(request, visitor),
        )  # fmt: skip
        return _page_of(content, status)

    def _stranger(self, request: Request, wrong: bool = False) -> Response:
        content = rendering.render(
            "login.html", language_of(request), layout="base.html", section="", wrong=wrong,
            takes_tokens=bool(self._access.tokens), has_proxy=bool(self._access.proxies),
            asked=Asked("/", {}, time.time_ns()), **self._frame(request, None),
        )  # fmt: skip
        response = _page_of(content, 401)
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    async def _come_in(self, request: Request) -> Response:
        if request.method != "POST":
            known = self._sessions.visitor(request) is not None
            return RedirectResponse("/", 303, rendering.HEADERS) if known else self._stranger(request)
        token = await session.token_in_form(request)
        response = RedirectResponse("/", 303, rendering.HEADERS)
        if not token or not self._sessions.begin(response, token, request):
            return self._stranger(request, wrong=True)
        return response

    async def _leave(self, request: Request) -> Response:
        response = RedirectResponse("/login", 303, rendering.HEADERS)
        self._sessions.end(response, request)
        return response

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answers a request for an unknown address, or a request that caused an internal error. The response
        has only the status."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        if request.url.path.startswith("/api/"):
            return Response(f"{status}\n", status, media_type="text/plain")
        visitor = self._sessions.visitor(request)
        return self.message(request, status, visitor)


def _always(show: Show, words: tuple[str, ...]) -> Choose:
    return lambda request: (show, words)


def _job(request: Request) -> tuple[Show, tuple[str, ...]]:
    number = request.path_params["id"]
    if number:
        return partial(job.shown, number=number), job.WORDS
    return partial(job.shown, number=request.query_params.get("id", "")), (*job.WORDS, "id")


def language_of(request: Request) -> Language:
    """Returns the language given in the address, or else the language that the browser prefers."""
    asked = request.query_params.get("lang", "")
    if asked in LANGUAGES:
        return language_in(asked)
    return language_in(accepted(request.headers.get("accept-language", "")))


def accepted(header: str) -> str:
    """Returns the available language with the highest weight in an Accept-Language header, or `en` if it
    contains none."""
    found: list[tuple[float, str]] = []
    for part in header[:1000].split(","):
        name, _, quality = part.strip().partition(";q=")
        code = name.strip().lower().split("-")[0]
        try:
            weight = float(quality or 1)
        except ValueError:
            continue
        if code in LANGUAGES and weight > 0:
            found.append((weight, code))
    return max(found, key=lambda one: one[0])[1] if found else "en"


def _own(request: Request) -> Mapping[str, str]:
    language = request.query_params.get("lang", "")
    return {"lang": language} if language in LANGUAGES else {}


def _page_of(content: str, status: int = 200) -> Response:
    return Response(content, status, rendering.HEADERS, "text/html; charset=utf-8")


def _download(shown: Shown, name: str, form: str) -> Response:
    """Returns a table as a file for download. Raises RequestError if the page has no table NAME."""
    known = {table.name: table for table in shown.tables}
    if name and name not in known:
        raise RequestError(f"table: {name[:60]}", "one of " + ", ".join(known))
    table: Table = known[name] if name else shown.tables[0]
    headers = {**rendering.HEADERS, "Content-Disposition": f'inline; filename="iodock-{table.name}.{form}"'}
    if form == "json":
        return Response(as_json(table, shown.begin, shown.end), 200, headers, "application/json")
    headers["Content-Disposition"] = headers["Content-Disposition"].replace("inline", "attachment")
    return Response(as_csv(table), 200, headers, "text/csv; charset=utf-8")


async def _static(request: Request) -> Response:
    found = rendering.static_files().get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    content, kind = found
    headers = {**rendering.HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    del headers["Vary"]
    return Response(content, 200, headers, kind)
