"""Half of the clients leave after 50 ms: what the server still computes for them, and who gains."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from scheduling import disconnects

from .result import Result, Table, spread
from .setting import Report, Setting, none_lost, times

RATE = 2.0
COLUMNS = (
    "clients that leave",
    "sent",
    "answered",
    "computed tokens a request",
    "p50 ms of who stay",
    "p99 ms",
)


async def run(setting: Setting) -> Result:
    """The model with and without them; then 1,000 that leave the fake engine, counted to the step."""
    seconds = setting.pick(15, 60)
    staying = setting.variant("nobody-leaves", "disconnects", {"share = 0.5": "share = 0"})
    ways = {"none": staying, "half": "disconnects"}
    runs: dict[str, list[Report]] = {way: [] for way in ways}
    for seed in setting.seeds:
        for way, workload in ways.items():
            async with setting.real() as server:
                flags = ("--workload", workload, "--rate", f"{RATE:g}", "--seed", str(seed))
                report = await setting.load(server.url, f"{way}-{seed}", "open", *flags, *times(seconds, 2))
                computed = (await server.metrics()).total("docket_computed_tokens_total")
                report["all"]["computed_by_server"] = computed
                runs[way].append(report)
    rows = [_row(way, reports) for way, reports in runs.items()]
    every = [report for reports in runs.values() for report in reports]
    with tempfile.TemporaryDirectory(prefix="docket-leave-") as folder:
        exact = await disconnects.run(setting.lines(Path(folder)))
    note = (
        f"{setting.model}, {RATE:g}/s, states of 500 tokens; tokens by the server's count, warm-up included."
    )
    return Result([Table(COLUMNS, rows)], [none_lost(every), *exact], [note])


def _row(way: str, reports: Sequence[Report]) -> tuple[str, ...]:
    groups = [report["all"] for report in reports]
    sent = [group["sent"] + report["warm_up_requests"] for group, report in zip(groups, reports, strict=True)]
    tokens = [group["computed_by_server"] / max(count, 1) for group, count in zip(groups, sent, strict=True)]
    latency = [spread([group["latency_ms"][part] for group in groups]) for part in ("p50", "p99")]
    answered = sum(group["outcomes"]["answered"] for group in groups)
    return (way, f"{sum(group['sent'] for group in groups):,}", f"{answered:,}", spread(tokens), *latency)
