"""A short read while a long state is read in the batch lane, with lanes and without.

Without lanes means the same read in the lane of the long state, where the order within a lane is what is
left: that prefers the state with the least work a waiting read. So a read of a resident state comes first
in any lane; one of a cold state, beside a long one for which 32 reads wait, does not. A wait is the
server's own, from admission until work on the read starts, and from ready until its step.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Any

from .bench import PATIENT_MS, Bench
from .figure import Figure, at_rest, middle
from .server import Server
from .wire import Broken, decision, request, text

LONG_WORDS = 7_250
SHORT_RUN_WORDS = 1_000
LANES = ("urgent", "batch")

LATEST_SHARE = 0.9
"""Of the prefill, after which no short read is asked: it should still meet the long one."""

LOOK_S = 0.05
"""How often the steps are looked at: below the length of a step, so that most are seen alone."""

SUM = "docket_step_duration_seconds_sum"
COUNT = "docket_step_duration_seconds_count"
COMPUTED = "docket_computed_tokens_total"


@dataclasses.dataclass(frozen=True)
class Scene:
    """What meets: questions about the long state, and the short one's words."""

    name: str
    questions: int
    short_words: int
    is_resident: bool
    times: int
    short_run_times: int


SCENES = (
    Scene("a resident state", 1, 10, True, 10, 1),
    Scene("a cold state of 300 words", 32, 300, False, 3, 1),
)


@dataclasses.dataclass
class Watch:
    """The steps of a while, from what the counters of their times rise by."""

    step_ms: list[float] = dataclasses.field(default_factory=list)
    computed: float = 0

    async def follow(self, server: Server) -> None:
        """Looks until it is cancelled."""
        before = await server.metrics()
        while True:
            await asyncio.sleep(LOOK_S)
            now = await server.metrics()
            count, spent_s, tokens = (now.total(name) - before.total(name) for name in (COUNT, SUM, COMPUTED))
            if count > 0:
                self.step_ms.append(spent_s / count * 1e3)
            self.computed += tokens
            before = now


@dataclasses.dataclass(frozen=True)
class Meeting:
    """One short read that met one long state."""

    wait_ms: float
    took_ms: float
    longest_step_ms: float
    long_s: float


async def run(bench: Bench) -> list[Figure]:
    """Each scene in both lanes in turn, always on a new long state."""
    words = SHORT_RUN_WORDS if bench.short else LONG_WORDS
    rows = []
    async with bench.real() as server:
        for scene in SCENES:
            count = scene.short_run_times if bench.short else scene.times
            meetings: dict[str, list[Meeting]] = {lane: [] for lane in LANES}
            for number in range(count):
                for lane, met in meetings.items():
                    after = LATEST_SHARE * words * (number + 0.5) / count
                    state = text(words, f"long {scene.name} {lane} {number}")
                    met += await meet(server, scene, lane, state, after)
            tokens = (await prewarmed(server, state))["prompt_tokens"]
            rows += [row for lane, met in meetings.items() for row in figures(scene, lane, met, tokens)]
        return [*rows, at_rest(await server.not_at_rest())]


async def meet(server: Server, scene: Scene, lane: str, state: str, after_tokens: float) -> list[Meeting]:
    """Asks about a long state, and the short question once so many of its tokens are computed.

    None is a meeting where the long state was read before the question was asked, or where a machine is so
    slow that the predicted wait is over the lane's limit, which is the server's default here.
    """
    name = f"{lane} {after_tokens:.0f}"
    short_state = text(scene.short_words, "short" if scene.is_resident else f"short {name}")
    if scene.is_resident:
        await prewarmed(server, short_state)
    async with watching(server) as watch:
        long = asyncio.create_task(request(server.port, "/v1/systemone", many(state, scene.questions)))
        while watch.computed < after_tokens and not long.done():
            await asyncio.sleep(LOOK_S / 5)
        is_met = not long.done()
        asked = decision(short_state, f"Is it late, {name}?", priority=lane, timeout_ms=PATIENT_MS)
        short = await request(server.port, "/v1/systemone", asked)
        end = await long
    for reply in (short, end):
        if reply.status not in (200, 429):
            raise Broken(f"a read ends with {reply.end}")
    if short.status == 429 or end.status == 429:
        return []
    meeting = Meeting(short.waited_ms, short.seconds * 1e3, max(watch.step_ms), end.seconds)
    return [meeting] if is_met else []


def many(state: str, questions: int) -> dict[str, Any]:
    """A decision in the batch lane."""
    asked = {f"q{n}": {"type": "noul", "instructions": f"Is it number {n}?"} for n in range(questions)}
    fields = {"samples": 1, "priority": "batch", "timeout_ms": PATIENT_MS}
    return {"state": state, "questions": asked, **fields}


async def prewarmed(server: Server, state: str) -> dict[str, Any]:
    """What a prewarm says of a state."""
    reply = await request(server.port, "/v1/prewarm", {"state": state, "timeout_ms": PATIENT_MS})
    if reply.status != 200:
        raise Broken(f"a prewarm ends with {reply.end}")
    answer: dict[str, Any] = reply.json()
    return answer


@contextlib.asynccontextmanager
async def watching(server: Server) -> AsyncIterator[Watch]:
    """Follows the steps for a while."""
    watch = Watch()
    task = asyncio.create_task(watch.follow(server))
    try:
        yield watch
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def figures(scene: Scene, lane: str, met: list[Meeting], tokens: int) -> Iterator[Figure]:
    """The rows of one lane."""
    name = f"{len(met)} reads of {scene.name} in lane {lane}, each while {scene.questions} in lane batch wait"
    if not met:
        yield Figure(f"{name}", "none met a long one")
        return
    waits = [meeting.wait_ms for meeting in met]
    shares = sorted(meeting.wait_ms / meeting.longest_step_ms for meeting in met)
    steps = [meeting.longest_step_ms for meeting in met]
    took = middle([meeting.took_ms for meeting in met])
    long = middle([meeting.long_s for meeting in met])
    in_one = sum(share <= 1 for share in shares)
    is_urgent = lane == "urgent"
    yield Figure(
        f"{name} for a prefill of {tokens:,} tokens: wait, median and longest",
        f"{middle(waits):,.0f}, {max(waits):,.0f} ms",
    )
    yield Figure(
        "each wait over the longest step of its prefill",
        " ".join(f"{share:.2f}" for share in shares),
        "at most 1" if is_urgent else "",
        in_one == len(met) if is_urgent else None,
    )
    yield Figure(
        "longest steps of the prefills; short, long answered after: medians",
        f"{middle(steps):,.0f} ms; {took:,.0f} ms, {long:.1f} s",
    )
