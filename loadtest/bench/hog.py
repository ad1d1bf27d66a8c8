"""Three tenants with and without a fourth that sends four of five requests, more than the server bears."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from scheduling import hog as fairness

from .result import Result, Table, number, spread
from .setting import Report, Setting, none_lost, times

WORKLOAD = "hog-tenant"
TENANTS = ("hog", "acme", "bolt", "cove")
HOG_SHARE = 0.8
OVER = 1.5
"""Of the capacity that a closed loop finds, with the hog."""

CLIENTS = 16
COLUMNS = ("tenant", "without the hog: p50, p99 ms", "with it: p50, p99 ms", "good of admitted", "refused")


async def run(setting: Setting) -> Result:
    """The model under an open loop, three seeds; then shares of the fake engine, all clients busy."""
    seconds = setting.pick(20, 60)
    quiet = setting.variant("no-hog", WORKLOAD, {"hog = 80": "hog = 0"})
    keys = [word for name in TENANTS for word in ("--key", f"{name}=sk-{name}")]
    allowed = [word for name in TENANTS for word in ("--api-key", f"{name}=sk-{name}")]
    runs: dict[str, list[Report]] = {"without": [], "with": []}
    async with setting.real(*allowed, is_patient=False, headers=fairness.key("hog")) as server:
        closed = ("--workload", WORKLOAD, "--clients", str(CLIENTS), "--seed", "99", *keys)
        capacity = (await setting.load(server.url, "capacity", "closed", *closed, *times(5, 2)))[
            "achieved_rate"
        ]
        if not capacity:
            return Result(notes=[f"Not measured: {setting.model} answers nothing in 5 s on this machine."])
        rate = max(OVER * capacity, 1)
        for seed in setting.seeds:
            for name, workload, share in (("without", quiet, 1 - HOG_SHARE), ("with", WORKLOAD, 1)):
                flags = ("--workload", workload, "--rate", f"{rate * share:.2f}", "--seed", str(seed), *keys)
                runs[name].append(
                    await setting.load(server.url, f"{name}-{seed}", "open", *flags, *times(seconds, 3))
                )
    rows = [_row(name, runs["without"], runs["with"]) for name in TENANTS]
    note = (
        f"{setting.model}: {number(rate)}/s with the hog, {OVER:g} times the {number(capacity)}/s of a "
        f"closed loop, and {number(rate * (1 - HOG_SHARE))}/s without; medians of seeds, least to most."
    )
    with tempfile.TemporaryDirectory(prefix="docket-hog-") as folder:
        shares = await fairness.run(setting.lines(Path(folder)))
    figures = [none_lost([*runs["without"], *runs["with"]]), *shares]
    return Result([Table(COLUMNS, rows)], figures, [note])


def _row(name: str, without: Sequence[Report], beside: Sequence[Report]) -> tuple[str, ...]:
    groups = [report["tenants"][name] for report in beside]
    good = [group["goodput"] for group in groups if group["goodput"] is not None]
    refused = [group["outcomes"]["refused"] / max(group["sent"], 1) for group in groups]
    return (
        *(name, _latency(name, without), _latency(name, beside)),
        *(spread(good), f"{max(refused):.0%} at most"),
    )


def _latency(name: str, reports: Sequence[Report]) -> str:
    times_ms = [report["tenants"][name]["latency_ms"] for report in reports]
    known = [one for one in times_ms if one["count"]]
    return "; ".join(spread([one[part] for one in known]) for part in ("p50", "p99")) if known else "-"
