"""New states whose questions come with, half a second after and five seconds after a prewarm, or without."""

from __future__ import annotations

from collections.abc import Sequence

from .result import Result, Table, spread
from .setting import Report, Setting, none_lost, times

RATE = 1.0
LEAD_S = 5
COLUMNS = (
    "prewarm",
    "answered",
    "p50 ms",
    "p90 ms",
    "p99 ms",
    "queue wait p50",
    "state wait p50",
    "engine p50",
)


async def run(setting: Setting) -> Result:
    """The same seeds, and so the same states at the same times, in each way."""
    seconds = setting.pick(15, 60)
    cold = setting.variant("cold", "prewarm-0", {"prewarm_lead_ms = 0\n": ""})
    ways = {"none": cold, "with the question": "prewarm-0", "0.5 s": "prewarm-500", "5 s": "prewarm-5000"}
    runs: dict[str, list[Report]] = {way: [] for way in ways}
    for seed in setting.seeds:
        for way, workload in ways.items():
            async with setting.real() as server:
                label = f"{way}-{seed}"
                flags = ("--workload", workload, "--rate", f"{RATE:g}", "--seed", str(seed))
                report = await setting.load(server.url, label, "open", *flags, *times(seconds, LEAD_S + 1))
                runs[way].append(report)
    every = [report for reports in runs.values() for report in reports]
    rows = [_row(way, reports) for way, reports in runs.items()]
    note = f"{setting.model}, states of 500 tokens, {RATE:g}/s: medians of seeds, least to most."
    return Result([Table(COLUMNS, rows)], [none_lost(every)], [note])


def _row(way: str, reports: Sequence[Report]) -> tuple[str, ...]:
    answered = sum(report["all"]["outcomes"]["answered"] for report in reports)
    latency = [
        spread([report["all"]["latency_ms"][part] for report in reports]) for part in ("p50", "p90", "p99")
    ]
    parts = ("queue_wait", "state_wait", "engine_time")
    stages = [spread([report["stages_ms"][part]["p50"] for report in reports]) for part in parts]
    return (way, f"{answered:,}", *latency, *stages)
