"""Each fault of `--fake-fault`: it harms what it must and nothing else.

An answer that differs from a sound server's is as broken as none.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from .bench import Bench
from .cases import PLACES, POISON, POISONED, SHORT, SOFTWARE_ERROR, SOUND, STEPS, VENOM, VENOMOUS, Case
from .figure import Figure, must
from .server import Server
from .wire import Reply, decide, ends, request, text

STEP_MS = "10"
WAVES = 4
WAVE = 8
GRACE_S = 2.0
"""Beyond a request's deadline, for the way to the client on a busy machine."""

LOOK_S = 0.02
READY = "/health?ready=1"


@dataclasses.dataclass(frozen=True)
class Seen:
    """What became of a server."""

    replies: list[Reply]
    readiness: list[int]
    health: Reply
    failed_steps: int | None
    left: str
    exit_code: int | None


async def run(bench: Bench) -> list[Figure]:
    """A sound server first, whose answers are the right ones."""
    cases = [*STEPS, *(PLACES if knows_places(bench.docket) else ())]
    if bench.short:
        cases = [case for case in cases if case.fault in SHORT]
    sound = await observed(bench, SOUND)
    rows = [figure(SOUND, sound, sound)]
    for case in cases:
        rows.append(figure(case, await observed(bench, case), sound))
    return rows


def knows_places(docket: Path) -> bool:
    """Whether a fault's place may be more than the number of a step."""
    told = subprocess.run([docket, "serve", "--help"], capture_output=True, text=True, check=False)
    return "KIND@PLACE" in told.stdout


async def observed(bench: Bench, case: Case) -> Seen:
    """Asks, looks whether it is ready meanwhile, then stops it or waits for its end."""
    fault = ("--fake-fault", case.fault) if case.fault else ()
    async with bench.fake("--fake-step-ms", STEP_MS, *fault, *case.flags) as server:
        async with looking(server) as readiness:
            replies = await asked(server, case.timeout_ms)
        health = await request(server.port, "/health")
        if case.dies:
            return Seen(replies, readiness, health, None, "", await server.ended())
        left = "" if 504 in case.seen else await server.not_at_rest()
        readiness.append((await request(server.port, READY)).status)
        failed = int((await server.metrics()).total("docket_engine_failures_total"))
        server.terminate()
        return Seen(replies, readiness, health, failed, left, await server.ended())


@contextlib.asynccontextmanager
async def looking(server: Server) -> AsyncIterator[list[int]]:
    """The statuses of readiness, as they come."""
    found: list[int] = []

    async def look() -> None:
        while True:
            found.append((await request(server.port, READY)).status)
            await asyncio.sleep(LOOK_S)

    task = asyncio.create_task(look())
    try:
        yield found
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def asked(server: Server, timeout_ms: int) -> list[Reply]:
    """Waves of decisions, until all are asked or the engine is dead."""
    replies: list[Reply] = []
    for wave in range(WAVES):
        wanted = (one_of(server, wave, number, timeout_ms) for number in range(WAVE))
        replies += await asyncio.gather(*wanted)
        if any(reply.headers.get("x-docket-reason") == "engine_dead" for reply in replies):
            break
    return replies


async def one_of(server: Server, wave: int, number: int, timeout_ms: int) -> Reply:
    """One decision on a state of its own."""
    state = text(20, f"fault {wave} {number}") + (f" {VENOM}" if number == VENOMOUS else "")
    question = f"Is it {wave} or {POISON if number == POISONED else number}?"
    return await decide(server.port, state, question, timeout_ms=timeout_ms)


def figure(case: Case, seen: Seen, sound: Seen) -> Figure:
    """One row: what was seen, and what of it is wrong."""
    wrong = list(faults_of(case, seen, sound))
    told = [ends(seen.replies), f"exit {seen.exit_code}"]
    if seen.failed_steps is not None:
        told.insert(1, f"{seen.failed_steps} failed steps")
    if set(seen.readiness) != {200}:
        told.insert(1, f"ready {', '.join(str(status) for status in sorted(set(seen.readiness)))}")
    what = " ".join(["--fake-fault", case.fault, *case.flags] if case.fault else ["no fault"])
    return must(what, "; ".join([*told, *wrong]), goal(case), not wrong)


def goal(case: Case) -> str:
    """What is promised, in words."""
    if case.dies:
        return f"says why, exit {SOFTWARE_ERROR}"
    harm = "nobody" if case.harmed is None else "1 of 8"
    others = sorted(case.statuses - {200})
    more = f", some are told {others[0]}" if others else ""
    return f"{harm} fails{more}; other answers as without it; exit 0"


def faults_of(case: Case, seen: Seen, sound: Seen) -> Iterator[str]:
    """What is not as it should be, in words."""
    yield from faults_of_replies(case, seen, sound)
    if case.failed_steps not in (None, seen.failed_steps):
        yield f"{case.failed_steps} failed steps expected"
    if case.lost:
        restarts = seen.health.json()["details"]["restarts"]
        if restarts[case.lost] != 1:
            yield f"restarts {restarts}"
    if case.dies:
        yield from faults_of_death(seen)
    elif seen.exit_code != 0:
        yield "exit 0 expected"
    yield from faults_of_readiness(case, seen.readiness)
    if seen.left:
        yield f"not at rest: {seen.left}"


def faults_of_readiness(case: Case, readiness: list[int]) -> Iterator[str]:
    """Of what it told those who send requests; a server that dies may be gone when it is asked."""
    told = set(readiness) - ({0} if case.dies else set())
    if not told <= case.readiness:
        yield f"readiness {sorted(told)}"
    if case.stalls and 503 not in told:
        yield "ready while a step hung"
    if not case.dies and readiness[-1] != 200:
        yield "not ready in the end"


def faults_of_replies(case: Case, seen: Seen, sound: Seen) -> Iterator[str]:
    """Of the ends of requests."""
    numbered = [(place % WAVE, reply) for place, reply in enumerate(seen.replies)]
    if case.harmed is not None:
        spared = sum(reply.status != 500 for place, reply in numbered if place == case.harmed)
        if spared:
            yield f"{spared} that should fail did not"
    others = {reply.status for place, reply in numbered if place != case.harmed}
    if not case.seen <= others <= case.statuses:
        yield f"other statuses {sorted(others)}"
    pairs = zip(seen.replies, sound.replies, strict=False)
    differ = sum(answers(one) != answers(right) for one, right in pairs if one.status == 200)
    if differ:
        yield f"{differ} answers differ"
    silent = sum(reply.status == 503 and "retry-after" not in reply.headers for reply in seen.replies)
    if silent and not case.dies:
        yield f"{silent} x 503 without Retry-After"
    slowest = max(reply.seconds for reply in seen.replies)
    if slowest > case.timeout_ms / 1e3 + GRACE_S:
        yield f"an end {slowest:.1f} s after it was asked"


def answers(reply: Reply) -> object:
    """What was answered."""
    return reply.json()["answers"]


def faults_of_death(seen: Seen) -> Iterator[str]:
    """Of how a server says that its engine is dead."""
    if seen.health.status != 503:
        yield f"/health {seen.health.end}"
    else:
        body = seen.health.json()
        told = (body.get("ok"), body.get("engine"), body.get("exit_code"), bool(body.get("reason")))
        if told != (False, "dead", SOFTWARE_ERROR, True):
            yield f"/health says {body}"
    if seen.exit_code != SOFTWARE_ERROR:
        yield f"exit {SOFTWARE_ERROR} expected"
