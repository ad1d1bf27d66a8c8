"""Stages: what the server says of its time, against the client's own clock.

The client is on one core, so that it is never in the way of the one engine thread. Each of its connections
stays open, because the server's clock starts at a request's first byte and not at the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from scheduling.figure import Figure, middle, must
from scheduling.server import Server
from scheduling.wire import HOST, Broken, packed, request, text

from .bench import Bench
from .tickets import routing

CLIENTS = 16
SHORT_RUN_REQUESTS, SHORT_RUN_CLIENTS = 120, 8
ALONE = 40
STATES = 40
"""Every other request is about one of these; the others are about a state that nobody has read."""

MEDIAN_MS_MAX, P99_MS_MAX = 5.0, 20.0
ROUNDED_MS = 0.5
"""How far sums of times that are rounded to 0.1 ms may be off."""

NAMES = ["prepare", "warm", "questions", "readout", "engine", "wait"]


@dataclasses.dataclass(frozen=True)
class Sample:
    """One answer."""

    took_ms: float
    server_ms: float
    stages: dict[str, float]
    behind_registration: bool

    @property
    def left_ms(self) -> float:
        """What engine and wait do not explain."""
        return self.took_ms - self.stages["engine"] - self.stages["wait"]


@dataclasses.dataclass(frozen=True)
class Place:
    """Which cores the server may run on, and whether it registers tasks meanwhile."""

    name: str
    is_server_apart: bool = False
    registers: bool = False


PLACES = (
    Place("server free"),
    Place("server free, and a task is being registered all the time", registers=True),
    Place("server kept to the other core", is_server_apart=True),
)


async def run(bench: Bench) -> list[Figure]:
    """The same load in each place."""
    rows = [await alone(bench)]
    for place in PLACES:
        rows += figures(place, await measured(bench, place))
    return rows


async def alone(bench: Bench) -> Figure:
    """The same requests one after the other: what the stages are where nothing is waited for."""
    async with bench.serving("--threads", "1") as server:
        samples = await client(server, iter(range(ALONE)))
    return Figure(f"one client, {ALONE} answers: {', '.join(NAMES)}: medians", medians(samples))


def medians(samples: Sequence[Sample]) -> str:
    """Of each stage."""
    return " ".join(f"{middle([one.stages[name] for one in samples]):.1f}" for name in NAMES) + " ms"


async def measured(bench: Bench, place: Place) -> list[Sample]:
    """All answers of one load."""
    cores = sorted(os.sched_getaffinity(0))
    with on_cores(cores[:1] if place.is_server_apart else cores):
        # What is started has the cores of who starts it.
        serving = bench.serving("--threads", "1")
        server = await serving.__aenter__()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_exit(serving.__aexit__)
        stack.enter_context(on_cores(cores[-1:]))
        if place.registers:
            await stack.enter_async_context(registering(server))
        return await loaded(server, bench)


@contextlib.contextmanager
def on_cores(cores: Sequence[int]) -> Iterator[None]:
    """This process on these cores for a while."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.asynccontextmanager
async def registering(server: Server) -> Any:
    """Registers a task again and again."""
    stop = False

    async def again() -> int:
        done = 0
        while not stop:
            reply = await request(server.port, "/decisio/v1/tasks", routing(skewed=True).task())
            if reply.status != 200:
                raise Broken(f"a registration under load ends with {reply.end}: {reply.body[:200]!r}")
            done += 1
        return done

    task = asyncio.create_task(again())
    yield
    stop = True
    await task


async def loaded(server: Server, bench: Bench) -> list[Sample]:
    """As many connections as clients, each with one request after another."""
    requests, clients = (SHORT_RUN_REQUESTS, SHORT_RUN_CLIENTS) if bench.short else (bench.requests, CLIENTS)
    numbers = iter(range(requests))
    found = await asyncio.gather(*(client(server, numbers) for _ in range(clients)))
    return list(itertools.chain.from_iterable(found))


async def client(server: Server, numbers: Iterator[int]) -> list[Sample]:
    """One connection."""
    reader, writer = await asyncio.open_connection(HOST, server.port)
    samples = []
    for number in numbers:
        message = packed("POST", "/decisio/v1/systemone", body(number), {"connection": "keep-alive"})
        began = time.perf_counter()
        writer.write(message)
        status, headers = await answer(reader)
        took_ms = (time.perf_counter() - began) * 1e3
        if status != 200:
            raise Broken(f"request {number} ends with {status}")
        samples.append(sample(took_ms, headers))
    writer.close()
    return samples


def body(number: int) -> dict[str, Any]:
    """One or two questions about a known state or a new one."""
    of = number // 2 % STATES if number % 2 == 0 else f"new {number}"
    questions = {
        f"q{n}": {"type": "noul", "instructions": f"Is it {n} of {number}?"}
        for n in range(1 + number % 3 // 2)
    }
    return {"state": text(40, f"stages {of}"), "questions": questions}


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers of a whole answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    await reader.readexactly(int(headers["content-length"]))
    return int(first.split()[1]), headers


def sample(took_ms: float, headers: dict[str, str]) -> Sample:
    """What the headers say."""
    try:
        parts = [part.split("=") for part in headers["x-decisio-stages"].split(";")]
        stages = {name: float(value) for name, value in parts}
        server_ms = float(headers["x-decisio-server-ms"])
    except (KeyError, ValueError) as error:
        raise Broken(f"the headers tell no times ({error!r})") from error
    if list(stages) != NAMES:
        raise Broken(f"the stages are {list(stages)}")
    return Sample(took_ms, server_ms, stages, headers.get("x-decisio-wait-behind") == "registration")


def figures(place: Place, samples: Sequence[Sample]) -> list[Figure]:
    """The rows of one place."""
    left = sorted(one.left_ms for one in samples)
    p99 = left[int(len(left) * 0.99)]
    behind = sum(one.behind_registration for one in samples)
    steps = [sum(one.stages[name] for name in NAMES[:4]) - one.stages["engine"] for one in samples]
    totals = [abs(one.stages["engine"] + one.stages["wait"] - one.server_ms) for one in samples]
    took = middle([one.took_ms for one in samples])
    return [
        Figure(
            f"{place.name}: {len(samples):,} answers: client's time, {', '.join(NAMES)}: medians",
            f"{took:.1f} {medians(samples)}; x-decisio-wait-behind in {behind}",
        ),
        Figure(
            "client's time - (engine + wait): median",
            f"{middle(left):.2f} ms",
            f"{MEDIAN_MS_MAX:.0f} ms",
            middle(left) <= MEDIAN_MS_MAX,
        ),
        Figure(
            "the same: p99, longest",
            f"{p99:.2f}, {left[-1]:.2f} ms",
            f"p99 {P99_MS_MAX:.0f} ms",
            p99 <= P99_MS_MAX,
        ),
        must("the same: least", f"{left[0]:.2f} ms", "not below 0", left[0] >= -ROUNDED_MS),
        must(
            "engine + wait against x-decisio-server-ms, furthest",
            f"{max(totals):.1f} ms",
            "equal",
            max(totals) <= ROUNDED_MS,
        ),
        must(
            "prepare + warm + questions + readout - engine, most",
            f"{max(steps):.1f} ms",
            "none above",
            max(steps) <= ROUNDED_MS,
        ),
    ]
