"""64 clients that send a byte a second and 200 stalled uploads, beside clients who behave.

Rounds with and without them alternate on one server, so that what the machine does meanwhile falls on
both. A slow client that the server cuts off comes back at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import statistics
from collections.abc import AsyncIterator

from scheduling.bench import PATIENT, Bench
from scheduling.figure import Figure, at_rest, must
from scheduling.server import CONNECTIONS, Server
from scheduling.wire import HOST, Reply, decide, ends, request, text

SPEED = ("--fake-step-ms", "2", "--fake-token-us", "20")
DRIPPING = 64
STALLED = 200
DRIP_SECONDS = 1.0
ASKING = 4
"""Clients who behave, each with one decision at a time."""

PAUSE_SECONDS = 0.02
"""Between two decisions of one of them, and between two looks at /health."""

HEALTH_MS_MAX = 50
BODY_BYTES = 1_000_000
"""That a stalled upload announces."""


@dataclasses.dataclass(frozen=True)
class Round:
    """What clients who behave saw in a while."""

    health: list[Reply]
    decisions: list[Reply]


async def run(bench: Bench) -> list[Figure]:
    """Rounds in turns."""
    seconds, pairs = (3.0, 1) if bench.short else (20.0, 4)
    alone, beside, held = [], [], []
    async with bench.fake(*SPEED, *PATIENT) as server:
        await behave(server, 1.0, "warm-up")
        for pair in range(pairs):
            alone.append(await behave(server, seconds, f"alone {pair}"))
            async with crowd(server):
                beside.append(await behave(server, seconds, f"beside {pair}"))
                held.append((await server.metrics())[CONNECTIONS])
        left = await server.not_at_rest()
        metrics = await server.metrics()
    cut = metrics['docket_http_connections_ended_total{reason="head"}']
    return figures(alone, beside, min(held), cut, left)


async def behave(server: Server, seconds: float, name: str) -> Round:
    """Asks for health and for decisions, each on a connection of its own."""
    until = asyncio.get_running_loop().time() + seconds
    found = Round([], [])

    async def look() -> None:
        while asyncio.get_running_loop().time() < until:
            found.health.append(await request(server.port, "/health", headers=server.headers))
            await asyncio.sleep(PAUSE_SECONDS)

    async def ask(client: int) -> None:
        number = 0
        while asyncio.get_running_loop().time() < until:
            state = text(120, f"{name} {client} {number % 8}")
            found.decisions.append(await decide(server.port, state, f"Is it {number} of {name}?"))
            number += 1
            await asyncio.sleep(PAUSE_SECONDS)

    await asyncio.gather(look(), *(ask(client) for client in range(ASKING)))
    return found


@contextlib.asynccontextmanager
async def crowd(server: Server) -> AsyncIterator[None]:
    """All slow clients, until it is left."""
    slow = [asyncio.create_task(drip(server.port)) for _ in range(DRIPPING)]
    slow += [asyncio.create_task(stall(server.port)) for _ in range(STALLED)]
    try:
        while (await server.metrics())[CONNECTIONS] < DRIPPING + STALLED:
            await asyncio.sleep(0.05)
        yield
    finally:
        for one in slow:
            one.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        while (await server.metrics())[CONNECTIONS] > 1:
            await asyncio.sleep(0.05)


async def drip(port: int) -> None:
    """A head, one byte a second."""
    head = b"POST /v1/systemone HTTP/1.1\r\nhost: localhost\r\nx-slow: " + b"z" * 10_000
    while True:
        _, writer = await asyncio.open_connection(HOST, port)
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            for byte in head:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(DRIP_SECONDS)


async def stall(port: int) -> None:
    """A whole head and the beginning of a body, of which no more comes."""
    head = f"POST /v1/systemone HTTP/1.1\r\nhost: localhost\r\ncontent-length: {BODY_BYTES}\r\n\r\n".encode()
    while True:
        reader, writer = await asyncio.open_connection(HOST, port)
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            writer.write(head + b'{"st')
            await reader.read()


def quantiles(replies: list[Reply]) -> tuple[float, float, float]:
    """Median, 99 of 100 and worst, in milliseconds."""
    times = sorted(reply.seconds * 1_000 for reply in replies)
    return statistics.median(times), times[int(0.99 * (len(times) - 1))], times[-1]


def figures(
    alone: list[Round], beside: list[Round], held: float, cut: float, left: str
) -> list[Figure]:
    """The rows."""
    health = [reply for one in beside for reply in one.health]
    everything = [reply for one in alone + beside for reply in one.health + one.decisions]
    rows = [
        must(
            f"{DRIPPING} clients at a byte a second and {STALLED} stalled uploads; connections open with them",
            f"{held:.0f}",
            f"at least {DRIPPING + STALLED}",
            held >= DRIPPING + STALLED,
        ),
        Figure("heads that were cut off for taking too long", f"{cut:.0f}"),
        must(
            "how those who behave were answered",
            ends(everything),
            "all 200",
            all(reply.status == 200 for reply in everything),
        ),
    ]
    for name, of in (("/health", "health"), ("decisions", "decisions")):
        without, with_them = (
            quantiles([reply for one in rounds for reply in getattr(one, of)])
            for rounds in (alone, beside)
        )
        parts = zip(("median", "p99", "worst"), without, with_them, strict=True)
        for part, before, after in parts:
            is_limited = of == "health" and part != "median"
            rows.append(
                Figure(
                    f"{name}, {part}, ms: without them, with them, ratio",
                    f"{before:.1f}, {after:.1f}, {after / before:.2f}",
                    f"below {HEALTH_MS_MAX}" if is_limited else "",
                    after < HEALTH_MS_MAX if is_limited else None,
                )
            )
    rows.append(Figure("/health asked beside them", f"{len(health)} times"))
    medians = [quantiles(one.decisions)[0] for one in alone]
    rows.append(
        Figure(
            "noise: median of decisions in each round without them, ms",
            " ".join(f"{value:.1f}" for value in medians),
        )
    )
    rows.append(at_rest(left))
    return rows
