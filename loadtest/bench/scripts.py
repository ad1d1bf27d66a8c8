"""The same decisions on states in each script: how many tokens the same number of words takes."""

from __future__ import annotations

import re

from .result import Result, Table, number
from .setting import WORKLOADS, Setting, none_lost, times

CLIENTS = 4
COLUMNS = ("script", "answered", "tokens a decision", "decisions/s", "p50 ms")


async def run(setting: Setting) -> Result:
    """The shipped mixture, then each script alone, on one server."""
    seconds = setting.pick(4, 20)
    text = (WORKLOADS / "scripts.toml").read_text(encoding="utf-8")
    mixture = re.findall(r"^scripts = .*$", text, re.MULTILINE)[0]
    names = re.findall(r"(\w+) = \d", mixture)
    rows: list[tuple[str, ...]] = []
    reports = []
    async with setting.real() as server:
        for name in ("mixture", *names):
            changed = {} if name == "mixture" else {mixture: f"scripts = {{ {name} = 1 }}"}
            workload = setting.variant(f"scripts-{name}", "scripts", changed)
            flags = ("--workload", workload, "--clients", str(CLIENTS), *times(seconds))
            report = await setting.load(server.url, name, "closed", *flags)
            group = report["all"]
            answered = group["outcomes"]["answered"]
            tokens = (group["computed_tokens"] + group["cached_tokens"]) / max(answered, 1)
            rates = (number(report["achieved_rate"]), number(group["latency_ms"]["p50"]))
            rows.append((name, f"{answered:,}", number(tokens), *rates))
            reports.append(report)
    note = f"{setting.model}, {CLIENTS} clients, states of about 200 words; questions are in English."
    return Result([Table(COLUMNS, rows)], [none_lost(reports)], [note])
