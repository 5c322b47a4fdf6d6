"""Pulls the samples of agents, for sites where agents can't push.

Each request tells an agent which of its data the collector has stored on the disk, and the agent sends the
rest. The data is processed like that of a push. Agents that respond slowly or not at all have their own limit
of concurrent requests, so they do not delay the other agents.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.limits import Refusal
from iodock.centre.monitor.speakers import Names
from iodock.centre.monitor.targets import Shown, Target
from iodock.centre.portal.asking import Asking, Known, NoRoom, Pull, addresses_of
from iodock.centre.portal.keeper import Keeper
from iodock.shared.errors import AnswerError, RequestError, StoreError
from iodock.shared.settings import AgentLimits

TAKERS = 2
AT_ONCE_BYTES = 256 << 20
"""Total size of the responses that are held in memory."""
GOOD_LANE, DOUBTFUL_LANE = 256, 64
"""Numbers of agents that are pulled at the same time: of fast ones, and of those that failed last or are
slow."""
QUICK_S = 2.0
"""Time limit for a connection and for a response of a good agent. An agent that exceeds it is tried again as
a doubtful one."""
CONNECT_S, ANSWER_S = 5.0, 30.0
"""Time limits for doubtful agents: for the connection, including name look-up and TLS, and for a whole
response."""
ANSWERS_A_TURN = 16
"""Largest number of responses in one turn. An agent that was away has many."""
LONGEST_WAIT_S = 300.0
"""Longest time until an agent that failed is pulled again."""
_NO_ROOM_S = 1.0
"""After memory was short, an agent is pulled again after about this time."""
_NAME_SERVERS = 32
"""Number of threads for name look-ups. There are many, because a name service may hang, too."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Pulling:
    """The agents to pull, the collector's credentials, and the interval."""

    targets: tuple[Target, ...]
    shown: Shown
    every_s: float


class _Trouble(Exception):
    """Gives the reason why a turn failed. WAIT_S is the time until a retry in s, or 0 if it is not known."""

    def __init__(self, why: str, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.wait_s = wait_s


class _Slow(Exception):
    """Says that an agent that was pulled with the short time limits did not respond in time."""


class _Agent:
    """The state of pulling from one agent."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.known = Known()
        self.name = ""
        self.address = ""
        self.failures = 0
        self.is_slow = False
        self.trouble = ""

    @property
    def is_doubtful(self) -> bool:
        """Returns whether the agent's last turn failed or was slow."""
        return self.is_slow or self.failures > 0


class Puller:
    """Pulls all agents at intervals, in one event loop."""

    def __init__(
        self, keeper: Keeper, pulling: Pulling, names: Names, trust: ssl.SSLContext, tell: Tell
    ) -> None:
        self._keeper, self._pulling, self._names = keeper, pulling, names
        self._trust, self._tell = trust, tell
        self._good, self._doubtful = asyncio.Semaphore(GOOD_LANE), asyncio.Semaphore(DOUBTFUL_LANE)

    async def run(self) -> None:
        """Pulls all agents until the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            for target in self._pulling.targets:
                group.create_task(self._follow(_Agent(target)))

    async def _follow(self, agent: _Agent) -> None:
        # The first turns begin at random times, so that the agents are not all pulled at the same time.
        await asyncio.sleep(random.uniform(0, self._pulling.every_s / 2))
        while True:
            async with self._doubtful if agent.is_doubtful else self._good:
                wait = await self._wait_after_turn(agent)
            await asyncio.sleep(wait)

    async def _wait_after_turn(self, agent: _Agent) -> float:
        """Pulls one agent, and returns the time in s until its next turn."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            has_more = await self._turn(agent)
        except _Slow:
            agent.is_slow = True
            return 0.0
        except _Trouble as trouble:
            return self._fail(agent, trouble)
        except NoRoom:
            # The collector lacks memory, so this does not count as a failure of the agent.
            self._note(agent, "there is no memory for the samples at the moment")
            return _NO_ROOM_S * random.uniform(0.5, 1.5)
        except Exception as error:
            # Only a bug in iodock raises another exception. It counts as a failure of this agent, so that the
            # other agents are still pulled.
            return self._fail(agent, _Trouble(f"a mistake in iodock: {error!r}"))
        agent.failures, agent.is_slow = 0, not has_more and clock() - began > QUICK_S
        self._note(agent, "")
        return 0.0 if has_more else max(0.0, began + self._pulling.every_s - clock())

    def _fail(self, agent: _Agent, trouble: _Trouble) -> float:
        """Counts a failure of the agent and returns the time in s until its next turn. The time doubles with
        each failure in sequence."""
        agent.failures += 1
        agent.address = ""
        self._note(agent, str(trouble))
        doubled = self._pulling.every_s * (1 << min(agent.failures - 1, 10))
        return max(trouble.wait_s, min(doubled, LONGEST_WAIT_S) * random.uniform(0.5, 1.0))

    def _note(self, agent: _Agent, trouble: str) -> None:
        """Prints an agent's error when it begins or changes, and a line when it is over."""
        if trouble != agent.trouble:
            self._tell(
                f"note: {agent.target}: {trouble}" if trouble else f"over: {agent.target}: {agent.trouble}"
            )
        agent.trouble = trouble

    async def _turn(self, agent: _Agent) -> bool:
        """Pulls up to ANSWERS_A_TURN responses of an agent. Returns whether the agent has more data. Raises
        _Trouble, _Slow."""
        connect_s, answer_s = (CONNECT_S, ANSWER_S) if agent.is_doubtful else (QUICK_S, QUICK_S)
        try:
            asking = await self._begin(agent, connect_s)
        except TimeoutError:
            raise self._too_late(agent, f"no connection after {CONNECT_S:.0f} s") from None
        except OSError as error:
            raise _Trouble(_told(error)) from error
        try:
            return await self._answers(agent, asking, answer_s)
        except TimeoutError:
            raise self._too_late(agent, f"no answer after {ANSWER_S:.0f} s") from None
        except (AnswerError, RequestError, OSError) as error:
            raise _Trouble(_told(error)) from error
        except StoreError:
            # The message about the agent does not contain the reason, because the collector reports errors of
            # its store itself.
            raise _Trouble("the samples can't be stored at the moment") from None
        finally:
            asking.end()

    def _too_late(self, agent: _Agent, why: str) -> Exception:
        return _Trouble(why) if agent.is_doubtful else _Slow()

    async def _begin(self, agent: _Agent, patience_s: float) -> Asking:
        async with asyncio.timeout(patience_s):
            known = [agent.address] if agent.address else await addresses_of(agent.target)
            *others, last = known
            for address in others:
                with contextlib.suppress(OSError):
                    async with asyncio.timeout(patience_s / len(known)):
                        return await self._connect(agent, address)
            return await self._connect(agent, last)

    async def _connect(self, agent: _Agent, address: str) -> Asking:
        trust = self._trust if agent.target.is_secure else None
        asking = await Asking.begin(agent.target, address, trust)
        agent.address = address
        return asking

    async def _answers(self, agent: _Agent, asking: Asking, patience_s: float) -> bool:
        bearer = self._pulling.shown.bearer()
        for _ in range(ANSWERS_A_TURN):
            with self._keeper.room.some(str(agent.target)) as room:
                async with asyncio.timeout(patience_s):
                    pull = await asking.ask(agent.known, bearer, room)
                self._check_name(agent, pull)
                if not pull.frames:
                    return False
                await self._keep(agent, pull)
            if not pull.has_more:
                return False
        return True

    def _check_name(self, agent: _Agent, pull: Pull) -> None:
        why = self._names.why_not(agent.target, pull.host, pull.spool)
        if why:
            self._keeper.refuse(Refusal(str(agent.target), why), agent.name)
            raise _Trouble(why)
        agent.name = pull.host

    async def _keep(self, agent: _Agent, pull: Pull) -> None:
        before = agent.known.kept if agent.known.spool == pull.spool else 0
        taken = await self._keeper.keep(pull.frames, str(agent.target), pull.host, sent=pull.sent)
        if isinstance(taken, Refusal):
            raise _Trouble(taken.why, taken.wait_s)
        if taken.spool and taken.spool != pull.spool:
            raise _Trouble("batches of another spool than the agent reports")
        # An agent discards a batch that is reported as refused. A batch with a wrong machine name is not
        # reported, because it may be accepted later.
        is_refused = bool(taken.refused) and not taken.is_name_refused
        kept = taken.kept if taken.spool else before
        agent.known = Known(pull.spool, kept, taken.full and bool(taken.spool), is_refused)
        if taken.refused:
            raise _Trouble(taken.refused)
        if kept <= before:
            raise _Trouble("the agent sends batches again that are already stored")


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


@contextlib.contextmanager
def pulling(collector: Collector, wanted: Pulling, limits: AgentLimits, tell: Tell) -> Iterator[None]:
    """Pulls the agents in a separate thread while the context is open, so that neither pages nor pushes wait
    for agents. Raises RequestError if a file with credentials can't be used."""
    # The token is read once before the start. If it is unusable, one error is raised instead of one message
    # for each agent.
    wanted.shown.bearer()
    trust = wanted.shown.trust()
    _allow_connections(len(wanted.targets))
    loop = asyncio.new_event_loop()
    end = asyncio.Event()
    names = Names(wanted.targets, lambda machine: collector.store.catalogue.spools.get(machine, ()))

    def tell_if_heard(line: str) -> None:
        # If the message can't be printed, for example because standard error is closed, pulling continues.
        with contextlib.suppress(Exception):
            tell(line)

    async def run() -> None:
        loop.set_default_executor(ThreadPoolExecutor(_NAME_SERVERS, "names"))
        keeper = Keeper(collector, limits, TAKERS, AT_ONCE_BYTES)
        work = loop.create_task(Puller(keeper, wanted, names, trust, tell_if_heard).run())
        ended = loop.create_task(end.wait())
        await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            # `Puller.run` ends only because of a bug in iodock.
            tell_if_heard(f"error: pulling has ended: {work.exception()!r}")
        for task in (work, ended):
            task.cancel()
        await asyncio.gather(work, ended, return_exceptions=True)

    def work_here() -> None:
        try:
            loop.run_until_complete(run())
        except Exception as error:
            tell_if_heard(f"error: pulling has ended: {error!r}")
        finally:
            loop.close()

    thread = threading.Thread(target=work_here, name="pulling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        # If pulling has ended by itself, its event loop is closed and the call raises RuntimeError.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(end.set)
        thread.join(ANSWER_S)


def _allow_connections(count: int) -> None:
    """Raises this process's limit of open files if it is too low for this number of agents."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 1024 and (soft < hard or hard == resource.RLIM_INFINITY):
        wanted = count + 1024
        with contextlib.suppress(OSError, ValueError):
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
