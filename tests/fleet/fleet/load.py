"""Clients: what they ask, what they send back, and that they come back when told."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import random
from collections.abc import Sequence

from scheduling.server import Metrics, Server
from scheduling.wire import Reply, decide, text

from .setting import STATE_WORDS, Router

KEY = "x-docket-state-key"

CLIENT_RETRIES_MAX = 8
"""How often a client asks again; official ones do it fewer times, at smaller loads."""

RETRIED = (0, 408, 429, 500, 502, 503, 504)
"""Statuses after which official clients ask again; 0 is a connection that broke."""


@dataclasses.dataclass
class Client:
    """Clients of one router, who know the keys of states that they were told."""

    router: Router
    keys: dict[int, str] = dataclasses.field(default_factory=dict)
    replies: list[Reply] = dataclasses.field(default_factory=list)
    """All of them, of all tries."""

    async def ask(self, state: int) -> Reply:
        """A decision on a state, once."""
        sent = {KEY: self.keys[state]} if self.router.sends_key and state in self.keys else {}
        reply = await decide(self.router.port, body_of(state), "Is it late?", sent)
        if KEY in reply.headers:
            self.keys.setdefault(state, reply.headers[KEY])
        self.replies.append(reply)
        return reply

    async def ask_until(self, state: int) -> Reply:
        """The same, as often as a client does that comes back when it is told to."""
        reply = await self.ask(state)
        for turn in range(CLIENT_RETRIES_MAX):
            if reply.status not in RETRIED:
                break
            told = reply.headers.get("retry-after-ms")
            await asyncio.sleep(int(told) / 1000 if told else 0.1 * 2**turn)
            reply = await self.ask(state)
        return reply


def body_of(state: int) -> str:
    """The text of a state."""
    return text(STATE_WORDS, f"fleet {state}")


def zipf(states: int, count: int, seed: int) -> list[int]:
    """States as they are asked about: the n-th one n times as rarely as the first."""
    draw = random.Random(seed)
    return draw.choices(range(states), [1 / (rank + 1) for rank in range(states)], k=count)


async def all_of(asked: Sequence[int], workers: int, ask) -> list[Reply]:  # type: ignore[no-untyped-def]
    """Asks about all of these, so many at a time; the replies as they come."""
    left, replies = iter(asked), []

    async def work() -> None:
        for state in left:
            replies.append(await ask(state))

    await asyncio.gather(*(work() for _ in range(workers)))
    return replies


def in_turn(servers: Sequence[Server]):  # type: ignore[no-untyped-def]
    """Asks the dockets themselves, one after the other: round robin without a router."""
    turn = itertools.cycle(servers)

    async def ask(state: int) -> Reply:
        return await decide(next(turn).port, body_of(state), "Is it late?")

    return ask


@dataclasses.dataclass(frozen=True)
class Counted:
    """What all dockets have done meanwhile."""

    decisions: tuple[int, ...]
    """Of each."""
    hit_share: float
    """Of the tokens of states that were looked for, those that were there."""

    @property
    def busiest(self) -> float:
        """The busiest docket's decisions over the mean."""
        return max(self.decisions) * len(self.decisions) / max(sum(self.decisions), 1)


async def counters(servers: Sequence[Server]) -> list[Metrics]:
    """The metrics of each."""
    return [await server.metrics() for server in servers]


def grown(before: Sequence[Metrics], after: Sequence[Metrics]) -> Counted:
    """What has happened between two looks."""

    def of(name: str) -> list[float]:
        pairs = zip(before, after, strict=True)
        return [later.total(name) - earlier.total(name) for earlier, later in pairs]

    looked = sum(of("docket_prefix_lookup_tokens_total"))
    hit = sum(of("docket_prefix_hit_tokens_total"))
    return Counted(tuple(int(count) for count in of("docket_questions_total")), hit / max(looked, 1))


async def homes(client: Client, servers: Sequence[Server], states: int) -> list[int]:
    """Which docket answers about each state; -1 where none or several did."""
    found = []
    before = await counters(servers)
    for state in range(states):
        reply = await client.ask_until(state)
        after = await counters(servers)
        decisions = grown(before, after).decisions
        answered = [index for index, count in enumerate(decisions) if count]
        found.append(answered[0] if reply.status == 200 and len(answered) == 1 else -1)
        before = after
    return found
