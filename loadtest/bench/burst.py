"""50 requests at one moment on one cold state: its tokens are computed exactly once."""

from __future__ import annotations

import tempfile
from pathlib import Path

from scheduling import shared
from scheduling.figure import must

from .result import Result, Table, number
from .setting import Setting, none_lost

CLIENTS = 50
DUPLICATES = "docket_state_duplicate_prefill_tokens_total"
COLUMNS = (
    "burst",
    "requests",
    "state computed twice, tokens",
    "p50 ms",
    "last answer after ms",
    "computed",
    "cached",
)


async def run(setting: Setting) -> Result:
    """The generator's burst in one lane, each on a fresh server; then one in all lanes, to the token."""
    rows: list[tuple[str, ...]] = []
    reports, twice = [], 0
    load = ("--workload", "burst", "--clients", str(CLIENTS), "--requests", str(CLIENTS))
    for seed in setting.seeds:
        async with setting.real() as server:
            report = await setting.load(server.url, f"{seed}", "closed", "--seed", str(seed), *load)
            again = int((await server.metrics()).total(DUPLICATES))
        group, latency = report["all"], report["all"]["latency_ms"]
        ends = (str(group["sent"]), str(again), number(latency["p50"]), number(latency["max"]))
        rows.append((f"seed {seed}", *ends, f"{group['computed_tokens']:,}", f"{group['cached_tokens']:,}"))
        reports.append(report)
        twice += again
    once = must(f"tokens by {DUPLICATES}", str(twice), "0", twice == 0)
    result = Result([Table(COLUMNS, rows)], [none_lost(reports), once])
    if not setting.is_fake:
        with tempfile.TemporaryDirectory(prefix="docket-burst-") as folder:
            result.figures += await shared.run(setting.lines(Path(folder)))
    return result
