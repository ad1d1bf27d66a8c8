"""What the generator itself costs, against a server that answers at once."""

from __future__ import annotations

from scheduling.figure import Figure, middle

from .result import Result, Table, number, spread
from .setting import Report, Setting, free_port, none_lost, process, times

RATES = (1_000, 5_000)
CLIENTS = 32
GOAL_MS = 1.0
COLUMNS = ("loop", "offered /s", "achieved /s", "p50 ms", "p99 ms", "max ms", "start lag p99 ms", "of a core")


async def run(setting: Setting) -> Result:
    """The open loop at two rates, then the closed loop at its most; on a machine that it shares."""
    seconds = setting.pick(5, 30)
    port = free_port()
    reports: list[Report] = []
    rows = []
    words = [str(setting.loadtest), "null", "--port", str(port)]
    async with process(setting, "null", port, words) as url:
        load = ("--workload", "tiny", *times(seconds, 2))
        for rate in RATES:
            for seed in setting.seeds:
                flags = ("--rate", str(rate), "--seed", str(seed), *load)
                report = await setting.load(url, f"open-{rate}-{seed}", "open", *flags)
                rows.append(_row(f"open, seed {seed}", report))
                reports.append(report)
        report = await setting.load(url, "closed", "closed", "--clients", str(CLIENTS), *load)
        rows.append(_row(f"closed, {CLIENTS} clients", report))
    added = [one["all"]["latency_ms"]["p99"] for one in reports if one["run"]["rate"] == RATES[-1]]
    figure = Figure(
        f"p99 at {RATES[-1]:,}/s, median of seeds, on a machine that does nothing else",
        f"{spread(added)} ms",
        f"below {GOAL_MS:g} ms",
        middle(added) < GOAL_MS,
    )
    return Result([Table(COLUMNS, rows)], [figure, none_lost([*reports, report])])


def _row(name: str, report: Report) -> tuple[str, ...]:
    latency, generator = report["all"]["latency_ms"], report["generator"]
    times_ms = [f"{latency[part]:.3f}" for part in ("p50", "p99", "max")]
    rates = [number(report["offered_rate"]), number(report["achieved_rate"])]
    return (
        *(name, *rates, *times_ms),
        *(f"{generator['start_lag_ms']['p99']:.3f}", f"{generator['cpu_share']:.0%}"),
    )
