"""50 requests at once on one cold state: its tokens are computed once, whatever the lanes."""

from __future__ import annotations

import asyncio
import dataclasses

from .bench import PATIENT, PATIENT_MS, Bench
from .figure import Figure, at_rest, must
from .server import Server
from .wire import Reply, decide, ends, request, text

CLIENTS = 50
STATE_WORDS = 1_900
LANES = ("urgent", "normal", "batch", "idle")


@dataclasses.dataclass(frozen=True)
class Burst:
    """What one burst cost, as the server counts and as its responses add up."""

    prefix_tokens: int
    computed: int
    behind: int
    told: int
    twice: int
    answers: list[Reply]
    left: str


async def run(bench: Bench) -> list[Figure]:
    """A fresh server for each burst, so that everything before the questions is cold."""
    bursts = []
    for number in range(1 if bench.short else 3):
        async with bench.real(*PATIENT) as server:
            bursts.append(await burst(server, number))
    return figures(bursts)


async def burst(server: Server, seed: int) -> Burst:
    """50 questions at one moment, each another one, in all lanes."""
    state = text(STATE_WORDS, f"shared {seed}")
    replies = await asyncio.gather(*(asked(server, state, number) for number in range(CLIENTS)))
    left = await server.not_at_rest()
    metrics = await server.metrics()
    prefix = (await request(server.port, "/v1/prewarm", {"state": state})).json()
    answered = [reply for reply in replies if reply.status == 200]
    return Burst(
        prefix_tokens=prefix["prompt_tokens"] if prefix["prefix"]["reused"] else 0,
        computed=int(metrics.total("docket_computed_tokens_total")),
        behind=int(metrics.total("docket_suffix_tokens_total")),
        told=sum(reply.number("x-docket-computed-tokens") for reply in answered),
        twice=int(metrics.total("docket_state_duplicate_prefill_tokens_total")),
        answers=replies,
        left=left,
    )


async def asked(server: Server, state: str, number: int) -> Reply:
    """A question that nobody else asks."""
    lane, question = LANES[number % len(LANES)], f"Is this about number {number}?"
    return await decide(server.port, state, question, priority=lane, timeout_ms=PATIENT_MS)


def figures(bursts: list[Burst]) -> list[Figure]:
    """The rows."""
    prefixes = ", ".join(f"{burst.computed - burst.behind:,} of {burst.prefix_tokens:,}" for burst in bursts)
    told = ", ".join(f"{burst.told:,} of {burst.computed:,}" for burst in bursts)
    slowest = max(reply.seconds for burst in bursts for reply in burst.answers)
    return [
        must(
            f"{CLIENTS} at once, answered",
            ends([reply for burst in bursts for reply in burst.answers]),
            "all",
            all(reply.status == 200 for burst in bursts for reply in burst.answers),
        ),
        must(
            "tokens computed of those before the questions, each burst on a cold server",
            prefixes,
            "each once",
            all(burst.computed - burst.behind == burst.prefix_tokens for burst in bursts),
        ),
        must(
            "the sum of x-docket-computed-tokens, of the server's counter",
            told,
            "equal",
            all(burst.told == burst.computed for burst in bursts),
        ),
        must(
            "docket_state_duplicate_prefill_tokens_total",
            str(sum(burst.twice for burst in bursts)),
            "0",
            all(burst.twice == 0 for burst in bursts),
        ),
        at_rest("; ".join(burst.left for burst in bursts if burst.left)),
        Figure("the last answer after", f"{slowest:.1f} s"),
    ]
