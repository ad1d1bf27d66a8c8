"""What it costs that operators look at `/live`: decisions/s with and without, and the actors' own time.

The fake engine takes no time and its memory is full of small states, so that what the scheduler and the
cache do is all there is, and what is held has thousands of runs. Rounds go through the numbers of viewers in
turns, back and forth.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from scheduling.figure import Figure
from scheduling.server import Metrics, Server
from scheduling.wire import HOST, Broken

from .result import Result, Table, number, spread
from .setting import Report, Setting, none_lost, times

VIEWERS = (0, 1, 16)
"""`/v1/live` has at most 16 streams."""

CLIENTS = 32
FLAGS = ("--fake-step-ms", "0", "--fake-token-us", "0", "--kv-bytes", "64MiB")
STATES = 4_000
ACTORS = ("scheduler", "cache")
GOAL = 0.01
COLUMNS = (
    *("viewers", "decisions/s", "to none in the same round", "p99 ms"),
    *(f"time of the {actor} for details" for actor in ACTORS),
)


async def run(setting: Setting) -> Result:
    """Each number of viewers in each round, on one server."""
    seconds = setting.pick(4, 15)
    changes = {"count = 100": f"count = {STATES}", "bytes = 100": "bytes = 700"}
    workload = setting.variant("looking", "tiny", changes)
    reports: dict[int, list[Report]] = {count: [] for count in VIEWERS}
    shares: dict[int, list[dict[str, float]]] = {count: [] for count in VIEWERS}
    async with setting.fake(*FLAGS) as server:
        for seed in setting.seeds:
            for count in VIEWERS if seed % 2 else reversed(VIEWERS):
                flags = ("--workload", workload, "--clients", str(CLIENTS), *times(seconds, 1))
                async with _looking(server, count):
                    before = await server.metrics()
                    report = await setting.load(server.url, f"{count}-{seed}", "closed", *flags)
                    after = await server.metrics()
                reports[count].append(report)
                shares[count].append(_shares(before, after, report["whole_s"]))
        held = (await server.health())["residency"]["segments"]
    rows = [_row(count, reports, shares) for count in VIEWERS]
    most = max(share["scheduler"] for count in VIEWERS for share in shares[count])
    figure = Figure("time of the scheduler for details, most of all runs", f"{most:.3%}", "below 1 %", most < GOAL)
    note = f"{held:,} blocks were held; fake engine without a time of its own, {CLIENTS} clients."
    runs = [report for count in VIEWERS for report in reports[count]]
    return Result([Table(COLUMNS, rows)], [figure, none_lost(runs)], [note])


def _shares(before: Metrics, after: Metrics, seconds: float) -> dict[str, float]:
    """Part of the time that each actor took to make details."""
    series = {actor: f'docket_details_duration_seconds_sum{{actor="{actor}"}}' for actor in ACTORS}
    return {
        actor: (after.get(name, 0.0) - before.get(name, 0.0)) / seconds for actor, name in series.items()
    }


def _row(
    count: int, reports: dict[int, list[Report]], shares: dict[int, list[dict[str, float]]]
) -> tuple[str, ...]:
    rates = [report["achieved_rate"] for report in reports[count]]
    ratios = [
        rate / report["achieved_rate"] for rate, report in zip(rates, reports[0], strict=True)
    ]
    p99 = [report["all"]["latency_ms"]["p99"] for report in reports[count]]
    own = (f"{max(share[actor] for share in shares[count]):.3%}" for actor in ACTORS)
    return (number(count), spread(rates), spread(ratios), spread(p99), *own)


@contextlib.asynccontextmanager
async def _looking(server: Server, count: int) -> AsyncIterator[None]:
    """So many streams of looks, read by nobody but taken off the wire."""
    tasks = [asyncio.create_task(_viewer(server.port)) for _ in range(count)]
    try:
        yield
        if ended := [task for task in tasks if task.done()]:
            raise Broken(f"{len(ended)} of {count} viewers were not shown looks: {ended[0].exception()}")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _viewer(port: int) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        head = f"GET /v1/live HTTP/1.1\r\nhost: {HOST}:{port}\r\naccept: text/event-stream\r\n\r\n"
        writer.write(head.encode())
        status = await reader.readline()
        if b" 200 " not in status:
            raise Broken(status.decode(errors="replace").strip())
        while await reader.read(65_536):
            pass
    finally:
        writer.close()
