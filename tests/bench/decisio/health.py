"""Health: how soon /decisio/health answers while 64 clients load the server."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import multiprocessing
import time
from typing import Any

from scheduling.figure import Figure, middle, must
from scheduling.wire import HOST, request, text

from .bench import Bench

CLIENTS = 64
PROBES, SHORT_RUN_PROBES = 200, 50
PAUSE_S = 0.05
SETTLE_S = 2.0
"""Until all clients wait for an answer."""
WORST_MS_MAX = 50.0


async def run(bench: Bench) -> list[Figure]:
    """The load is a process of its own, so that its clients do not delay the probe."""
    slow = ("--fake-step-ms", "50") if bench.is_fake else ()
    async with bench.serving(*slow) as server:
        load = multiprocessing.get_context("spawn").Process(target=clients, args=(server.port,), daemon=True)
        load.start()
        try:
            await asyncio.sleep(SETTLE_S)
            before = await server.metrics()
            times = await asyncio.to_thread(probes, server.port, SHORT_RUN_PROBES if bench.short else PROBES)
            after = await server.metrics()
        finally:
            load.kill()
            load.join()
    waiting = after.total("docket_decisions_open")
    answered = after.total("docket_reads_total") - before.total("docket_reads_total")
    return figures(times, waiting, answered)


def clients(port: int) -> None:
    """64 of them, each with one request after another."""
    asyncio.run(_crowd(port))


async def _crowd(port: int) -> None:
    await asyncio.gather(*(_client(port, number) for number in range(CLIENTS)))


async def _client(port: int, number: int) -> None:
    for turn in itertools.count():
        asked = {f"q{n}": {"type": "noul", "instructions": f"Is it {n}?"} for n in range(2)}
        await request(
            port, "/decisio/v1/systemone", {"state": text(60, f"{number} {turn}"), "questions": asked}
        )


def probes(port: int, count: int) -> list[tuple[float, bool]]:
    """Milliseconds with a connection each, and whether all was well."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        status, body = _get(port)
        found.append(((time.perf_counter() - began) * 1e3, status == 200 and body.get("ok") is True))
        time.sleep(PAUSE_S)
    return found


def _get(port: int) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    try:
        connection.request("GET", "/decisio/health")
        reply = connection.getresponse()
        content = reply.read()
        return reply.status, json.loads(content)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return 0, {"error": str(error)}
    finally:
        connection.close()


def figures(times: list[tuple[float, bool]], waiting: float, answered: float) -> list[Figure]:
    """The rows."""
    took = sorted(ms for ms, _ in times)
    worst, bad = took[-1], sum(not is_well for _, is_well in times)
    p99 = took[int(len(took) * 0.99)]
    return [
        Figure(
            f"/decisio/health under {CLIENTS} clients, worst of {len(took)}",
            f"{worst:.1f} ms",
            f"{WORST_MS_MAX:.0f} ms",
            worst <= WORST_MS_MAX,
        ),
        Figure("the same: median, p99", f"{middle(took):.1f}, {p99:.1f} ms"),
        must("answers that are not 200 with ok", str(bad), "0", bad == 0),
        must(
            "decisions open at the end; reads ended meanwhile",
            f"{waiting:.0f}; {answered:.0f}",
            "a load",
            waiting >= CLIENTS / 2 and answered > 0,
        ),
    ]
