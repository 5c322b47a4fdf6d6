"""Runs a server in this process that answers like Prometheus from given samples. Its formats and values are
those that Prometheus 2.42 wrote (fixtures/prometheus)."""

from __future__ import annotations

import json
import re
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

Samples = list[tuple[float, str]]
_QUERY = re.compile(
    r"(?:(?P<function>\w+)\()?(?P<name>\w+)?(?:\{(?P<matchers>.*)\})?\[(?P<length>\d+)s\]\)?", re.DOTALL
)
_MATCHER = re.compile(r'(\w+)(=~|!=|=)"((?:[^"\\]|\\.)*)",?')
_FUNCTIONS = {
    "last_over_time": lambda found: found[-1],
    "min_over_time": lambda found: min(found, key=float),
    "max_over_time": lambda found: max(found, key=float),
}


@dataclass
class Fake:
    """Samples that the server returns, settings of its behaviour, and the requests that it received."""

    series: list[tuple[dict[str, str], Samples]] = field(default_factory=list)
    port: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: tuple[int, bytes] | None = None
    """Sent instead of a true answer."""
    most_samples: int = 50_000_000
    waits: threading.Event | None = None
    """It sends nothing before that."""
    whole: bool = True
    """If not set, it closes the connection within its answer."""

    @property
    def address(self) -> str:
        return f"prometheus://127.0.0.1:{self.port}"

    def replied(self, path: str, form: dict[str, str]) -> tuple[int, bytes]:
        self.asked.append({"path": path, **form})
        if self.answer is not None:
            return self.answer
        found = re.fullmatch(_QUERY, form["query"])
        if found is None:
            return _failed(400, "bad_data", f'invalid parameter "query": {form["query"]}')
        if path.endswith("/api/v1/query"):
            end = float(form["time"])
            result = self._matrix(found, [end], "")
        elif path.endswith("/api/v1/query_range"):
            start, end, step = (float(form[name]) for name in ("start", "end", "step"))
            if (end - start) / step > 11_000:
                return _failed(400, "bad_data", "exceeded maximum resolution of 11,000 points per timeseries")
            result = self._matrix(found, [start + step * n for n in range(int((end - start) // step) + 1)],
                                  found["function"])  # fmt: skip
        else:
            return 404, b"404 page not found\n"
        if sum(len(one["values"]) for one in result) > self.most_samples:
            return _failed(422, "execution", "query processing would load too many samples into memory in "
                           "query execution")  # fmt: skip
        return 200, json.dumps(
            {"status": "success", "data": {"resultType": "matrix", "result": result}}
        ).encode()

    def _matrix(self, query: re.Match[str], times: list[float], function: str) -> list[dict[str, Any]]:
        length = float(query["length"])
        matchers = re.findall(_MATCHER, query["matchers"] or "")
        matchers += [("__name__", "=", query["name"])] if query["name"] else []
        result = []
        for labels, samples in self.series:
            if not all(_fits(labels.get(label, ""), *rest) for label, *rest in matchers):
                continue
            values: list[tuple[float, str]] = []
            for moment in times[bisect_left(times, samples[0][0]) :]:
                within = samples[
                    bisect_left(samples, (moment - length,)) : bisect_right(samples, (moment, "~"))
                ]
                if moment - length > samples[-1][0]:
                    break
                if function and within:
                    values.append((moment, _FUNCTIONS[function]([value for _, value in within])))
                elif not function:
                    values += within
            if values:
                named = {
                    k: v for k, v in labels.items() if k != "__name__" or function in ("", "last_over_time")
                }
                result.append({"metric": named, "values": values})
        return result


def _fits(value: str, operator: str, text: str) -> bool:
    plain = re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)
    if operator == "=~":
        return re.fullmatch(plain, value) is not None
    return (value == plain) == (operator == "=")


def _failed(status: int, kind: str, why: str) -> tuple[int, bytes]:
    return status, json.dumps({"status": "error", "errorType": kind, "error": why}).encode()


@contextmanager
def serving(fake: Fake) -> Iterator[Fake]:
    """Serves FAKE on a free port until the context ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            fake.headers.append(dict(self.headers))
            if fake.waits:
                fake.waits.wait(60)
            status, body = fake.replied(self.path, {name: values[0] for name, values in form.items()})
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + (0 if fake.whole else 1)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        if fake.waits:
            fake.waits.set()
        server.shutdown()
        server.server_close()
        thread.join(20)


def dead_port() -> int:
    """Returns the number of a port that has no listener."""
    with serving(Fake()) as gone:
        return gone.port
