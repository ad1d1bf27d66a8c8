"""Three times the load that the server can bear: every request has an end, inside its deadline.

Capacity is what 8 clients of a closed loop get answered of the same traffic; then an open loop starts three
times as many, whatever becomes of them. A client gives up a second after the deadline that it sent: what
it gave up on was not answered in time, by the client's own clock.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from .bench import Bench
from .figure import Figure, at_rest, must
from .server import Metrics, Server

GRACE_MS = 1_000
"""For the way to the client, on a machine that the generator shares with the server."""

TIMES = 3.0
CLIENTS = 8

DEADLINE_MS = {"urgent": 1_000, "normal": 8_000, "batch": 20_000, "idle": 20_000}
"""Until when an answer is of use: what each request sends, and what counts as good."""

SHORT_DEADLINE_MS = {"urgent": 1_000, "normal": 2_000, "batch": 4_000, "idle": 4_000}

RATE_MIN = 3.0
"""Requests a second where the machine is so busy that a closed loop of a second or two gets nothing."""

STATUSES = {200, 429, 503, 504}
REASONS = {"queue_full", "tokens", "wait", "tenant", "tokens_per_minute", "displaced", "expired", "bodies_full"}
"""Reasons in docs/API.md that overload may have; all others would be a fault of the server."""

FAKE = ("--fake-step-ms", "5", "--fake-token-us", "150")
"""The fake engine has a token a byte, so this is what a real one does with some 1,500 tokens a second."""

WORKLOAD = """
about = "overload: all lanes, each with its deadline; half of the requests on new states"

[states.known]
count = {known}
length = [{{ words = 80, sigma = 0.4, max = 300 }}]
zipf = 1.0
resident = true

[states.new]
count = 1000000
length = [{{ words = 80, sigma = 0.4, max = 300 }}]
in_turn = 1

[[traffic]]                    # nothing but the prewarms of the known states, before the run
share = 0
lane = "batch"
patience_ms = 120000
states = "known"
questions = {{ count = [1, 1], kinds = {{ noul = 1 }}, variants = 1 }}
{traffic}"""

TRAFFIC = """
[[traffic]]
share = {share}
lane = "{lane}"
timeout_ms = {deadline_ms}
limit_ms = {deadline_ms}
patience_ms = {patience_ms}
states = "{states}"
questions = {{ count = [1, {most}], kinds = {{ noul = 5, choice = 3 }}, options = [2, 6], variants = 64 }}
samples = 1
"""

SHARES = {
    "urgent": (20, "known", 1),
    "normal": (30, "known", 4),
    "batch": (30, "new", 4),
    "idle": (20, "new", 1),
}
"""Of each lane: its share of the requests, its states, its most questions."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long, and with which deadlines."""

    measure_s: int
    load_s: int
    known: int
    deadline_ms: dict[str, int]


async def run(bench: Bench) -> list[Figure]:
    """The fake engine, then the model for a shorter time."""
    fake = Plan(2, 4, 10, SHORT_DEADLINE_MS) if bench.short else Plan(8, 60, 20, DEADLINE_MS)
    real = Plan(2, 3, 4, SHORT_DEADLINE_MS) if bench.short else Plan(8, 20, 20, DEADLINE_MS)
    async with bench.fake(*FAKE) as server:
        rows = await overload(bench, server, "fake engine", fake)
    async with bench.real() as server:
        return rows + await overload(bench, server, bench.model, real)


async def overload(bench: Bench, server: Server, name: str, plan: Plan) -> list[Figure]:
    """Finds the capacity, then starts three times as much."""
    file = bench.folder / "overload.toml"
    file.write_text(workload(plan), encoding="utf-8")
    capacity = await answered_rate(bench, server, file, plan)
    before = statuses(await server.metrics())
    rate, seconds = f"{max(TIMES * capacity, RATE_MIN):.1f}", f"{plan.load_s}s"
    load = ("--workload", str(file), "--seed", "2", "--rate", rate, "--duration", seconds)
    report = await bench.generator.run(server, "open", *load)
    left = await server.not_at_rest()
    counted = {
        status: int(count - before.get(status, 0))
        for status, count in statuses(await server.metrics()).items()
        if count > before.get(status, 0)
    }
    title = f"{name}, {rate}/s of {capacity:.1f}/s for {seconds}"
    return [*checks(title, report, counted), at_rest(left), *by_lane(name, report)]


def workload(plan: Plan) -> str:
    """The load generator's file."""
    kinds = (
        TRAFFIC.format(
            share=share,
            lane=lane,
            states=states,
            most=most,
            deadline_ms=plan.deadline_ms[lane],
            patience_ms=plan.deadline_ms[lane] + GRACE_MS,
        )
        for lane, (share, states, most) in SHARES.items()
    )
    return WORKLOAD.format(known=plan.known, traffic="".join(kinds))


async def answered_rate(bench: Bench, server: Server, file: Path, plan: Plan) -> float:
    """Answered requests a second of a closed loop."""
    times = ("--duration", f"{plan.measure_s + 1}s", "--warm-up", "1s")
    report = await bench.generator.run(
        server, "closed", "--workload", str(file), "--clients", str(CLIENTS), *times
    )
    return float(report["achieved_rate"])


def statuses(metrics: Metrics) -> dict[int, float]:
    """Responses of decisions by status, as the server counts them."""
    found: dict[int, float] = {}
    for name, value in metrics.items():
        if name.startswith("docket_http_requests_total") and "systemone" in name:
            status = int(name.partition('status="')[2].partition('"')[0])
            found[status] = found.get(status, 0) + value
    return found


def checks(title: str, report: dict[str, Any], counted: dict[int, int]) -> list[Figure]:
    """What must hold however slow the machine is."""
    outcomes, sent = report["all"]["outcomes"], report["all"]["sent"]
    told = {int(status): count for status, count in report["statuses"].items()}
    lost = {end: outcomes[end] for end in ("failed", "timed_out", "connection_error") if outcomes[end]}
    strange = [str(status) for status in told if status not in STATUSES]
    strange += sorted(set(report["reasons"]) - REASONS)
    ends = ", ".join(f"{count} {end}" for end, count in outcomes.items() if count)
    return [
        must(f"{title}: {sent:,} requests, their ends by the deadline", ends, "no other", not lost),
        must("statuses and reasons of another trouble", ", ".join(strange) or "none", "none", not strange),
        must("responses by the server's count, by status", listed(counted), listed(told), counted == told),
        must(
            "refusals that do not say when to come back",
            str(report["retry_after_missing"]),
            "0",
            report["retry_after_missing"] == 0,
        ),
    ]


def by_lane(name: str, report: dict[str, Any]) -> list[Figure]:
    """Goodput, refusals and latency of each lane."""
    rows = []
    for lane in DEADLINE_MS:
        group = report["lanes"].get(lane)
        if not group:
            continue
        ends, sent = group["outcomes"], group["sent"]
        late = ends["expired"] + ends["timed_out"]
        good = "-" if group["goodput"] is None else f"{group['goodput']:.3f}"
        latency = group["latency_ms"]
        rows.append(
            Figure(
                f"{name}, {lane}: goodput (in time, of the admitted); refused, expired of {sent:,}; latency",
                f"{good}; {ends['refused'] / sent:.1%}, {late / sent:.1%}; "
                f"p50 {latency['p50']:,.0f}, p99 {latency['p99']:,.0f} ms",
            )
        )
    return rows


def listed(counts: dict[int, int]) -> str:
    """`3 x 200, 2 x 429`."""
    return ", ".join(f"{count} x {status}" for status, count in sorted(counts.items())) or "none"
