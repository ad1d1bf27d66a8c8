"""docket beside llama-server on the same file with as many threads: capacity, then latency at equal load.

Both are up all the time and only one is asked at a time, in turns whose order is reversed every other
round. Each loop of each round has a seed of its own, so that no side finds questions of an earlier one. Shared states
are the same in all rounds and both sides have read them before the first: how long that takes is a row of
its own. Distinct ones are new to both.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import statistics
import subprocess
from collections.abc import Sequence

from .llama import llama
from .result import Result, Table, number, spread
from .setting import Report, Setting, knows, none_lost, times

WORKLOADS = ("peers-shared", "peers-distinct")
STATES = 32
SLOTS = 8
SLOT_TOKENS = 2_048
CLIENTS = 16
LOAD = 0.7
"""Of the slower side's capacity, in the open loop."""

LOOPS = ("closed", "open")

RATE_MIN = 0.05
COLUMNS = ("model", "workload", "what", "docket", "llama-server", "docket / llama-server")


@dataclasses.dataclass(frozen=True)
class Side:
    """A server, and what the generator must know of it."""

    name: str
    url: str
    flags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Match:
    """Two sides, one model."""

    model: str
    sides: tuple[Side, Side]
    warm_up_s: float
    seconds: dict[str, float]
    """Of a run, by workload."""

    seeds: range
    """Of the rounds."""

    def label(self, *parts: object) -> str:
        """Of a report."""
        return "-".join([self.model, *(str(part) for part in parts)])


async def run(setting: Setting) -> Result:
    """The small model; with --full the default one too."""
    if setting.llama_server is None or setting.is_fake:
        return Result(notes=["Not measured: no llama-server was there; name one with --llama-server PATH."])
    result = Result([Table(COLUMNS, [])], notes=[await _version(setting)])
    for model in (setting.model, *((setting.default_model,) if setting.full else ())):
        if absent := setting.missing(model):
            result.notes.append(absent)
            continue
        async with contextlib.AsyncExitStack() as stack:
            server = await stack.enter_async_context(setting.real(model=model))
            context = SLOTS * SLOT_TOKENS
            other = await stack.enter_async_context(llama(setting, model, SLOTS, context))
            sides = (Side("docket", server.url), Side("llama", other, ("--driver", "llama-server")))
            is_small = model == setting.model
            seconds = setting.pick((10.0, 20.0), (60.0, 90.0)) if is_small else (60.0, 120.0)
            match = Match(
                model,
                sides,
                warm_up_s=5.0 if is_small else 20.0,
                seconds=dict(zip(WORKLOADS, seconds, strict=True)),
                seeds=setting.seeds if is_small else range(1, 3),
            )
            await _read_first(setting, match, result)
            for workload in WORKLOADS:
                await _compared(setting, match, workload, result)
    return result


async def _version(setting: Setting) -> str:
    words = [str(setting.llama_server), "--version"]
    done = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=False)
    told = " ".join((done.stdout + done.stderr).split())
    return (
        f"llama-server: {told[:200]}; `-np {SLOTS} -c {SLOTS * SLOT_TOKENS} -t {setting.threads}`, its "
        f"prompt cache on; docket: `--threads {setting.threads}`. {CLIENTS} clients."
    )


async def _read_first(setting: Setting, match: Match, result: Result) -> None:
    """Has both sides read all shared states, each with one question."""
    shared = WORKLOADS[0]
    changes = {"zipf = 0.8": "in_turn = 1", "count = [4, 4]": "count = [1, 1]"}
    workload = setting.variant("peers-first", shared, changes)
    # Few at a time, so that none waits for longer than its client does.
    flags = ("--workload", workload, "--clients", "2", "--requests", str(STATES))
    told, reports = [], []
    for side in match.sides:
        name = match.label(shared, "first", side.name)
        report = await setting.load(side.url, name, "closed", *flags, *side.flags)
        told.append(number(report["whole_s"]))
        reports.append(report)
    ratio = number(reports[1]["whole_s"] / reports[0]["whole_s"])
    what = f"{STATES} states read for the first time, s (last column: llama-server / docket)"
    result.tables[0].rows.append((match.model, shared, what, *told, ratio))
    result.figures.append(none_lost(reports, "read first", ("failed", "connection_error")))


async def _compared(setting: Setting, match: Match, workload: str, result: Result) -> None:
    closed = await _rounds(setting, match, workload, "closed", ("--clients", str(CLIENTS)))
    rates = [[report["achieved_rate"] for report in reports] for reports in closed]
    _rate_rows(result.tables[0], match, workload, closed, rates)
    middles = [statistics.median(side) for side in rates]
    reports = [*closed[0], *closed[1]]
    rate = max(LOAD * min(middles), RATE_MIN)
    found = await _rounds(setting, match, workload, "open", ("--rate", f"{rate:.2f}"))
    for part in ("p50", "p99"):
        values = [[report["all"]["latency_ms"][part] for report in side] for side in found]
        what = f"{part} ms of the answered at {number(rate)}/s, {LOAD:.0%} of the slower's capacity"
        result.tables[0].rows.append((match.model, workload, what, *_sides(values)))
    # Who waits until its client gives up is in no percentile.
    shares = [spread([_answered(report) for report in side]) for side in found]
    what = f"answered at {number(rate)}/s, % of the offered"
    result.tables[0].rows.append((match.model, workload, what, *shares, ""))
    reports += [*found[0], *found[1]]
    result.figures.append(none_lost(reports, workload, ("failed", "connection_error")))
    await _agreement(setting, match, workload)


async def _rounds(
    setting: Setting, match: Match, workload: str, kind: str, flags: tuple[str, ...]
) -> tuple[list[Report], list[Report]]:
    """Reports of each side, round by round."""
    found: dict[str, list[Report]] = {side.name: [] for side in match.sides}
    for seed in match.seeds:
        for side in match.sides if seed % 2 else reversed(match.sides):
            # No loop finds what another one has left.
            texts = str(10 * seed + LOOPS.index(kind))
            load = ("--workload", workload, "--seed", texts, *flags, *side.flags)
            name = match.label(workload, kind, side.name, seed)
            report = await setting.load(side.url, name, kind, *load, *times(match.seconds[workload], match.warm_up_s))
            found[side.name].append(report)
    first, second = (found[side.name] for side in match.sides)
    return first, second


def _rate_rows(
    table: Table, match: Match, workload: str, closed: Sequence[list[Report]], rates: list[list[float]]
) -> None:
    answers = [[report["answers_rate"] for report in reports] for reports in closed]
    table.rows.append((match.model, workload, "decisions/s, closed loop", *_sides(rates)))
    table.rows.append((match.model, workload, "answers/s, closed loop", *_sides(answers)))
    for part in ("computed", "cached"):
        tokens = [
            spread([_a_decision(report, part) for report in reports if report["all"]["outcomes"]["answered"]])
            for reports in closed
        ]
        table.rows.append((match.model, workload, f"{part} tokens a decision", *tokens, ""))


def _answered(report: Report) -> float:
    group = report["all"]
    return 100 * float(group["outcomes"]["answered"]) / max(float(group["sent"]), 1)


def _a_decision(report: Report, part: str) -> float:
    tokens, answered = report["all"][f"{part}_tokens"], report["all"]["outcomes"]["answered"]
    return float(tokens) / float(answered)


def _sides(values: Sequence[Sequence[float]]) -> tuple[str, str, str]:
    """Both, and the ratio within each round."""
    ours, theirs = values
    ratios = [one / other for one, other in zip(ours, theirs, strict=True) if other]
    return spread(ours), spread(theirs), spread(ratios)


async def _agreement(setting: Setting, match: Match, workload: str) -> None:
    """Both sides' answers beside each other, as a report of the generator."""
    if not knows(setting.loadtest, "compare", "--html"):
        return
    files = {
        side: [
            setting.run_file(match.label(workload, "closed", name, seed), "json") for seed in match.seeds
        ]
        for side, name in (("--a", "docket"), ("--b", "llama"))
    }
    words = [str(word) for side, paths in files.items() for path in paths for word in (side, path)]
    target = setting.run_file(match.label(workload, "compared"), "html")
    command = [str(setting.loadtest), "compare", *words, "--html", str(target)]
    await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
