"""Decisions a second over HTTP on an engine that costs nothing, and what docket itself adds to one."""

from __future__ import annotations

from typing import Any

from .bench import Bench
from .figure import Figure, at_rest, middle, must

FREE = ("--fake-step-ms", "0", "--fake-token-us", "0")
CLIENTS = 32
RATE = 3_000
OTHER_MS = 1.0
RUNS = 5


async def run(bench: Bench) -> list[Figure]:
    """Five closed loops, then an open one at half of the goal; generator and server share the cores."""
    seconds, warm_up = (1, 0.3) if bench.short else (10, 2)
    times = ("--duration", f"{seconds + warm_up}s", "--warm-up", f"{warm_up}s", "--workload", "tiny")
    async with bench.fake(*FREE) as server:
        closed = [
            await bench.generator.run(server, "closed", "--clients", str(CLIENTS), *times)
            for _ in range(RUNS)
        ]
        half = await bench.generator.run(server, "open", "--rate", str(RATE // 2), *times)
        left = await server.not_at_rest()
    return [*figures(closed, half), at_rest(left)]


def figures(closed: list[dict[str, Any]], half: dict[str, Any]) -> list[Figure]:
    """The rows."""
    rates = [run["achieved_rate"] for run in closed]
    other, lag = half["stages_ms"]["other"], half["generator"]["start_lag_ms"]["p99"]
    runs = [*closed, half]
    lost = sum(run["all"]["sent"] - run["all"]["outcomes"]["answered"] for run in runs)
    share = middle([run["generator"]["cpu_share"] for run in closed])
    return [
        Figure(
            f"decisions/s, {CLIENTS} keep-alive clients, median of {RUNS} (least to most)",
            f"{middle(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f}), generator on {share:.0%} of a core",
            f"{RATE:,}",
            middle(rates) >= RATE,
        ),
        Figure(
            f"*other* at {half['achieved_rate']:,.0f}/s: p50, p99 (generator's start lag p99)",
            f"{other['p50']:.1f}, {other['p99']:.1f} ms ({lag:.1f} ms)",
            f"p99 below {OTHER_MS:.0f} ms",
            other["p99"] < OTHER_MS,
        ),
        must(
            f"of {sum(run['all']['sent'] for run in runs):,} not answered",
            f"{lost} {half['first_fault'] or ''}".strip(),
            "0",
            lost == 0,
        ),
    ]
