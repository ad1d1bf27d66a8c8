"""What keeping states for later questions costs those who ask meanwhile, and what it gives them.

Then the same with a task of decisio being registered all the time, whose examples are read in the batch
lane.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence

from decisio.tasks import TASKS
from decisio.tickets import routing
from scheduling.server import Server
from scheduling.wire import Broken, request

from .result import Result, Table, number, spread
from .setting import Report, Setting, none_lost, times

RATE = 2.0
TASK_SECONDS_MAX = 3_600
"""The server's own limit for a registration, which waits while others ask."""

REGISTERED = 'docket_registrations_total{result="registered"}'
COLUMNS = (
    "kept",
    "urgent p50 ms",
    "urgent p99 ms",
    "normal p50 ms",
    "normal p99 ms",
    "found, of all tokens",
    "registered",
)


@dataclasses.dataclass(frozen=True)
class Way:
    """When a state is registered, and whether tasks are registered meanwhile."""

    name: str
    when: str
    has_tasks: bool = False


WAYS = (
    Way("not", "off"),
    Way("before the answer", "before"),
    Way("after the answer (the default)", "after"),
    Way("after the answer, and a task is being registered", "after", has_tasks=True),
)


async def run(setting: Setting) -> Result:
    """The same seeds in each way, each on a fresh server."""
    seconds = setting.pick(15, 60)
    runs: dict[str, list[tuple[Report, float]]] = {way.name: [] for way in WAYS}
    for seed in setting.seeds:
        for number_of, way in enumerate(WAYS):
            async with setting.real("--register-boundary", way.when) as server:
                flags = ("--workload", "registration", "--rate", f"{RATE:g}", "--seed", str(seed))
                async with _registering(server) if way.has_tasks else contextlib.nullcontext():
                    label = f"{number_of}-{way.when}-{seed}"
                    report = await setting.load(server.url, label, "open", *flags, *times(seconds, 2))
                runs[way.name].append((report, (await server.metrics()).get(REGISTERED, 0)))
    rows = [_row(name, found) for name, found in runs.items()]
    every = [report for found in runs.values() for report, _ in found]
    note = f"{setting.model}, {RATE:g}/s, two questions on each state: medians of seeds, least to most."
    return Result([Table(COLUMNS, rows)], [none_lost(every)], [note])


@contextlib.asynccontextmanager
async def _registering(server: Server) -> AsyncIterator[None]:
    """Registers a task of 60 examples again and again; the last one is left."""

    async def again() -> None:
        while True:
            task = routing(skewed=True).task()
            reply = await request(server.port, TASKS, task, seconds_max=TASK_SECONDS_MAX)
            if reply.status != 200:
                raise Broken(f"a registration under load ends with {reply.end}: {reply.body[:200]!r}")

    running = asyncio.create_task(again())
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def _row(name: str, found: Sequence[tuple[Report, float]]) -> tuple[str, ...]:
    reports = [report for report, _ in found]
    lanes = [
        spread([report["lanes"][lane]["latency_ms"][part] for report in reports])
        for lane in ("urgent", "normal")
        for part in ("p50", "p99")
    ]
    groups = [report["all"] for report in reports]
    cached = [
        group["cached_tokens"] / max(group["cached_tokens"] + group["computed_tokens"], 1) for group in groups
    ]
    return (name, *lanes, spread(cached), number(sum(count for _, count in found)))
