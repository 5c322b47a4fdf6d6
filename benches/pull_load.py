"""Measures how many agents a collector can pull from, and the cost.

    .venv/bin/python benches/pull_load.py [--agents 2500] [--dead 250] [--seconds 60] [--every 10]

Each agent has a batch of 20 jobs for each interval. All agents answer at once, from one process with a
loopback address for each. Dead agents accept connections and send nothing. Prints how many batches the
collector fetched and how old they were then, and the collector's processor time and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from collector_load import usage

from batches import COUNT, Entry, Part, frame
from fake_agent import SPOOL, raw_head

JOBS = 20


class Agents:
    """All simulated agents, distinguished by the address of the request."""

    def __init__(self, every_s: float, dead: int) -> None:
        self.every_s, self.dead = every_s, dead
        self.kept: dict[str, int] = {}
        self.given: dict[str, int] = {}
        self.began = time.monotonic()
        self.ages: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
                lines = {name.lower(): value for name, value in lines.items()}
                said = json.loads(await reader.readexactly(int(lines["content-length"])))
                name = lines["host"].rpartition(":")[0]
                if int(name.rpartition(".")[2]) - 1 + 250 * int(name.split(".")[2]) < self.dead:
                    await asyncio.sleep(3600)
                writer.write(self.answer(name, said))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def answer(self, name: str, said: dict[str, int]) -> bytes:
        """Returns the newest batch if the agent has not sent it yet."""
        number = int((time.monotonic() - self.began) / self.every_s) + 1
        if self.given.get(name) == number:
            return raw_head(f"node-{name}", 0)
        self.given[name] = number
        self.ages.append(time.monotonic() - self.began - (number - 1) * self.every_s)
        entries = [Entry(f"{name}-{job}", {("open", COUNT): number * job}) for job in range(JOBS)]
        body = frame(
            number, [Part(time.time_ns(), entries, full=number == 1)], host=f"node-{name}", spool=SPOOL
        )
        return raw_head(f"node-{name}", len(body)) + body


def run(port: int, every_s: float, dead: int, told: Connection) -> None:
    async def work() -> None:
        agents = Agents(every_s, dead)
        await asyncio.start_server(agents.serve, "0.0.0.0", port, backlog=4096)
        told.send("ready")
        while not told.poll():
            await asyncio.sleep(0.1)
        told.send((len(agents.given), len(agents.ages), agents.ages))

    loop = asyncio.new_event_loop()
    # The process exits without waiting for requests that are still open.
    loop.run_until_complete(work())
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("agents", 2500), ("dead", 250), ("seconds", 60), ("every", 10), ("port", 19846)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="collector-"))
    names = [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(options.agents)]
    lines = [f"http://{name}:{options.port} node-{name}" for name in names]
    (folder / "agents").write_text("\n".join(lines))
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    agents = context.Process(target=run, args=(options.port, options.every, options.dead, there), daemon=True)
    agents.start()
    here.recv()
    command = [sys.executable, "-m", "iodock", "monitor", "serve", "--store", str(folder / "store")]
    command += ["--listen", "127.0.0.1:0", "--pull-list", str(folder / "agents")]
    command += ["--pull-every", str(options.every)]
    collector = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        time.sleep(options.seconds)
        processor, memory = usage(collector.pid)
        here.send("end")
        asked, batches, ages = here.recv()
        print(f"agents that were asked: {asked:,} of {options.agents - options.dead:,} that answer")
        print(f"batches: {batches:,} in {options.seconds} s; age when fetched, median "
              f"{statistics.median(ages):.2f} s, longest {max(ages):.2f} s")  # fmt: skip
        print(f"collector: {processor / options.seconds:.2f} cores, {memory / 1e6:,.0f} MB")
    finally:
        collector.terminate()
        collector.wait(60)
        agents.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
