"""1,000 clients that go away in the middle: work for them stops, and nothing of theirs stays.

The budget for keys and values is small here, so that what a client had leased is missed: at the end one
state is asked about that needs nearly all of it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time

from .bench import PATIENT, Bench
from .figure import Figure, at_rest, must
from .server import CONNECTIONS, Metrics, Server
from .wire import Broken, decide, decision, hang_up, text

SPEED = ("--fake-step-ms", "5", "--fake-token-us", "100")
KV_TOKENS = 16_384
KV_BYTES_A_TOKEN = 64
"""The fake engine's."""

NEARLY_ALL = 0.9
STEP_TOKENS = 512
"""The default of `--step-tokens`."""

LANES = ("urgent", "normal", "batch", "idle")
STATES = 60
WORDS = (20, 100, 400)
STAYS_S_MAX = 1.0
NOTICED_SECONDS_MAX = 5.0
GROWTH_KIB_MAX = 1_024
WARM_UPS = 5
"""Crowds after which memory does not grow any more; with fewer it is not judged."""


@dataclasses.dataclass(frozen=True)
class Round:
    """One crowd that left."""

    cancelled: int
    after_leaving: int
    """Tokens computed from the last client's leaving on."""
    after_notice: int
    """The same from when the server had closed the last connection."""
    private_kib: int
    left: str


async def run(bench: Bench) -> list[Figure]:
    """Crowds to warm up, whose memory is not judged, then 1,000 clients that are."""
    warm_ups, rounds, clients = (1, 2, 150) if bench.short else (WARM_UPS, 4, 250)
    budget = ("--kv-bytes", str(KV_TOKENS * KV_BYTES_A_TOKEN))
    async with bench.fake(*SPEED, *PATIENT, *budget) as server:
        done = [await crowd(server, clients, str(number)) for number in range(warm_ups + rounds)]
        stays = await merged_read_outlives(server)
        again = await nearly_all(server)
        left = await server.not_at_rest()
    return figures(done, rounds, rounds * clients, stays, again, left)


async def crowd(server: Server, clients: int, name: str) -> Round:
    """Asks and leaves, each after another time; half of them abruptly."""
    draw = random.Random(name)
    before = await server.metrics()
    leaving = []
    for number in range(clients):
        state = text(draw.choice(WORDS), f"left {draw.randrange(STATES)}")
        lane = LANES[number % len(LANES)]
        body = decision(state, f"Is it {number} of {name}?", priority=lane)
        leaving.append(hang_up(server.port, body, draw.uniform(0, STAYS_S_MAX), number % 2 == 0))
    await asyncio.gather(*leaving)
    last = await server.metrics()
    noticed = await until_noticed(server)
    left = await server.not_at_rest()
    end = await server.metrics()
    return Round(
        cancelled=rise(before, end, 'docket_reads_total{outcome="cancelled"}'),
        after_leaving=rise(last, end, "docket_computed_tokens_total"),
        after_notice=rise(noticed, end, "docket_computed_tokens_total"),
        private_kib=server.private_kib(),
        left=left,
    )


async def until_noticed(server: Server) -> Metrics:
    """The counters once no connection is open but the one that asks."""
    until = time.monotonic() + NOTICED_SECONDS_MAX
    while True:
        metrics = await server.metrics()
        if metrics[CONNECTIONS] <= 1:
            return metrics
        if time.monotonic() > until:
            open_still = metrics[CONNECTIONS] - 1
            raise Broken(f"{open_still:.0f} connections are open {NOTICED_SECONDS_MAX:.0f} s later")


async def merged_read_outlives(server: Server) -> int:
    """The status of a client who stays, where 20 who asked the same have gone."""
    state, question = text(300, "stays"), "Is it the same?"
    stays = asyncio.create_task(decide(server.port, state, question))
    body = decision(state, question)
    await asyncio.gather(*(hang_up(server.port, body, 0.05, abruptly=True) for _ in range(20)))
    return (await stays).status


async def nearly_all(server: Server) -> float:
    """Of a state that needs nearly the whole budget, the share found again by a second question."""
    tokens = round(KV_TOKENS * NEARLY_ALL)
    state = text(tokens, "nearly all")[:tokens]
    for question in ("Is it large?", "Is it still there?"):
        reply = await decide(server.port, state, question)
        if reply.status != 200:
            raise Broken(f"a state of {NEARLY_ALL:.0%} of the budget ends with {reply.end}")
        await server.not_at_rest()
    return reply.number("x-docket-cached-tokens") / tokens


def rise(before: Metrics, after: Metrics, name: str) -> int:
    """By how much a counter rose."""
    return int(after[name] - before[name])


def figures(
    every: list[Round], counted: int, clients: int, stays: int, again: float, left: str
) -> list[Figure]:
    """The rows."""
    warm, rounds = every[-counted - 1], every[-counted:]
    most, limit = max(one.after_notice for one in rounds), 2 * STEP_TOKENS
    since_leaving = max(one.after_leaving for one in rounds)
    grown, is_warm = rounds[-1].private_kib - warm.private_kib, len(every) - counted >= WARM_UPS
    lefts = "; ".join(one.left for one in every if one.left)
    return [
        Figure(f"{clients:,} clients left in {len(rounds)} crowds; reads cancelled", f"{sum_of(rounds):,}"),
        must(
            "most tokens computed after the server had closed the last connection of a crowd",
            str(most),
            f"below two steps ({limit:,})",
            most < limit,
        ),
        Figure(
            "the same from the last client's leaving, by the client's clock",
            str(since_leaving),
            f"below two steps ({limit:,})",
            since_leaving < limit,
        ),
        at_rest(lefts or left),
        must("one of 21 who ask the same stays: its status", str(stays), "200", stays == 200),
        must(
            f"a state of {NEARLY_ALL:.0%} of the budget is kept whole, so no lease is left",
            f"{again:.0%} found again",
            "all",
            again >= 1,
        ),
        Figure(
            f"RssAnon + VmSwap after each crowd of {clients // counted}, KiB: growth by the last {counted}",
            f"{' '.join(f'{one.private_kib:,}' for one in every)}: {grown:+,}",
            f"at most {GROWTH_KIB_MAX:,} KiB" if is_warm else "",
            grown <= GROWTH_KIB_MAX if is_warm else None,
        ),
    ]


def sum_of(rounds: list[Round]) -> int:
    """Reads that were cancelled."""
    return sum(one.cancelled for one in rounds)
