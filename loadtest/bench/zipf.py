"""How much is found again by the number of states and the skew, where memory is for 300 of them."""

from __future__ import annotations

from .result import Result, Table, number
from .setting import Report, Setting, none_lost, times

COUNTS = (30, 300, 3_000)
SKEWS = (0.0, 0.8, 1.0, 1.2)
CLIENTS = 8
FLAGS = ("--fake-step-ms", "2", "--fake-token-us", "20", "--kv-bytes", "18MiB")
"""The fake engine has a token a byte and 64 bytes of keys and values a token: 300 states of 950."""


async def run(setting: Setting) -> Result:
    """A fresh server for each cell."""
    seconds = setting.pick(4, 15)
    rows, reports = [], []
    for count in COUNTS:
        cells = []
        for skew in SKEWS:
            report = await _cell(setting, count, skew, seconds)
            group = report["all"]
            share = group["cached_tokens"] / max(group["cached_tokens"] + group["computed_tokens"], 1)
            cells.append(f"{share:.0%}, {number(report['achieved_rate'])}/s")
            reports.append(report)
        rows.append((f"{count:,}", *cells))
    columns = ("states", *(f"Zipf {skew:g}" for skew in SKEWS))
    note = f"Found tokens of all, and decisions/s of {CLIENTS} clients; fake engine, memory for 300 states."
    return Result([Table(columns, rows)], [none_lost(reports)], [note])


async def _cell(setting: Setting, count: int, skew: float, seconds: float) -> Report:
    name = f"zipf-{count}-{skew:g}"
    workload = setting.variant(
        name, "zipf", {"count = 300": f"count = {count}", "zipf = 1.0": f"zipf = {skew:g}"}
    )
    async with setting.fake(*FLAGS) as server:
        flags = ("--workload", workload, "--clients", str(CLIENTS), *times(seconds, seconds / 2))
        return await setting.load(server.url, name, "closed", *flags)
