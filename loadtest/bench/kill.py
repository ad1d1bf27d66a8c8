"""The engine, or an actor, dies in the middle of an open loop: what its requests see.

Faults are injected, so the engine is the fake one. `tests/bench/scheduling.py faults` has every fault and
compares each answer; here is what a few do under load.
"""

from __future__ import annotations

import dataclasses

from scheduling.cases import SOFTWARE_ERROR
from scheduling.figure import Figure, must
from scheduling.server import Server

from .result import Result, Table, number
from .setting import Report, Setting, times

RATE = 50
SPEED = ("--fake-step-ms", "5", "--fake-token-us", "10")
STALL = ("--stall-after", "300ms")
COLUMNS = (
    "fault",
    "sent",
    "answered",
    "503",
    "other ends",
    "p50 ms",
    "p99 ms",
    "max ms",
    "failed steps",
    "exit",
)

ANSWERED = frozenset({"answered"})
RETRIED = ANSWERED | {"refused"}
DYING = RETRIED | {"failed", "connection_error"}


@dataclasses.dataclass(frozen=True)
class Case:
    """A fault, and the ends that requests may have."""

    name: str
    fault: str
    ends: frozenset[str]
    flags: tuple[str, ...] = ()
    dies: bool = False


CASES = (
    Case("none", "", ANSWERED),
    Case("the engine panics in one step", "panic@200", ANSWERED),
    Case("an error in each of ten steps", ",".join(f"error@{step}" for step in range(200, 210)), RETRIED),
    Case("memory runs out in one step", "oom@200", ANSWERED),
    Case("a step hangs for 1.5 s", "hang@200=1500ms", RETRIED, STALL),
    Case("the scheduler is lost", "scheduler@200", RETRIED),
    Case("the cache is lost", "cache@200", RETRIED),
    Case("the engine panics in every step from one on", "panic@200+", DYING, dies=True),
)


async def run(setting: Setting) -> Result:
    """Each fault in the same load."""
    seconds = setting.pick(8, 30)
    load = ("--workload", "zipf", "--rate", str(RATE), *times(seconds))
    result = Result([Table(COLUMNS, [])])
    for place, case in enumerate(CASES):
        fault = ("--fake-fault", case.fault) if case.fault else ()
        async with setting.fake(*SPEED, *fault, *case.flags) as server:
            report = await setting.load(server.url, f"{place}-{case.fault.partition('@')[0]}", "open", *load)
            failed = "" if case.dies else str(int(await _failed_steps(server)))
            if not case.dies:
                server.terminate()
            code = await server.ended()
        result.tables[0].rows.append(_row(case, report, failed, code))
        result.figures.append(_promise(case, report, code))
    note = f"Fake engine, {RATE}/s on Zipf's states; the fault is at the 200th step."
    result.notes.append(note)
    return result


async def _failed_steps(server: Server) -> float:
    return (await server.metrics()).total("docket_engine_failures_total")


def _row(case: Case, report: Report, failed: str, code: int | None) -> tuple[str, ...]:
    ends, latency = report["all"]["outcomes"], report["all"]["latency_ms"]
    other = [f"{count} {end}" for end, count in ends.items() if count and end not in RETRIED]
    counts = [f"{report['all']['sent']:,}", f"{ends['answered']:,}", str(ends["refused"])]
    told = [number(latency[part]) for part in ("p50", "p99", "max")]
    return (case.name, *counts, ", ".join(other), *told, failed, str(code))


def _promise(case: Case, report: Report, code: int | None) -> Figure:
    """Its requests end as they may, and the process as it must."""
    ends = {end for end, count in report["all"]["outcomes"].items() if count}
    wanted = SOFTWARE_ERROR if case.dies else 0
    strange = sorted(ends - case.ends) + ([f"exit {code}"] if code != wanted else [])
    goal = f"{', '.join(sorted(case.ends))}; exit {wanted}"
    return must(f"{case.name}: ends that are not promised", ", ".join(strange) or "none", goal, not strange)
