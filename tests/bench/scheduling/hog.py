"""A tenant that sends 80 % of the load beside three others, all with work waiting all the time.

A closed loop: each client keeps one request under way, so a tenant's share of the offered load is its
share of the clients, and all are backlogged throughout.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Iterator

from .bench import PATIENT, Bench
from .figure import Figure, at_rest, must
from .server import Server
from .wire import Reply, decide, text

CLIENTS = {"hog": 96, "acme": 8, "bolt": 8, "cove": 8}
WORDS = {"hog": 20, "acme": 10, "bolt": 25, "cove": 50}
"""Lengths differ, since what is shared are tokens, not requests."""

WARM_S = 2.0
SPEED = ("--fake-step-ms", "5", "--fake-token-us", "50")
TOLERANCE = 0.1


@dataclasses.dataclass
class Book:
    """What each tenant got while it was counted."""

    tokens: dict[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(CLIENTS, 0))
    others: list[Reply] = dataclasses.field(default_factory=list)
    is_counting: bool = False
    is_open: bool = True
    numbers: Iterator[int] = dataclasses.field(default_factory=itertools.count)

    def note(self, tenant: str, reply: Reply) -> None:
        """Adds one end."""
        if reply.status != 200:
            self.others.append(reply)
        elif self.is_counting:
            self.tokens[tenant] += reply.number("x-docket-computed-tokens")


async def run(bench: Bench) -> list[Figure]:
    """All clients at once; counted after a while, for a while."""
    seconds = 5.0 if bench.short else 30.0
    keys = [word for tenant in CLIENTS for word in ("--api-key", f"{tenant}=sk-{tenant}")]
    book = Book()
    async with bench.fake(*SPEED, *PATIENT, *keys, headers=key("hog")) as server:
        clients = [
            asyncio.create_task(client(server, tenant, book))
            for tenant, count in CLIENTS.items()
            for _ in range(count)
        ]
        await asyncio.sleep(WARM_S)
        book.is_counting = True
        least = await least_waiting(server, seconds)
        book.is_counting, book.is_open = False, False
        await asyncio.gather(*clients)
        left = await server.not_at_rest()
    return figures(book, seconds, least, left)


async def client(server: Server, tenant: str, book: Book) -> None:
    """One request after the other, each on a state of its own."""
    while book.is_open:
        number = next(book.numbers)
        state = text(WORDS[tenant], f"hog {number}")
        book.note(tenant, await decide(server.port, state, f"Is it {number}?", headers=key(tenant)))


async def least_waiting(server: Server, seconds: float) -> float:
    """The fewest reads that waited while it was counted: nobody has a share of an idle engine."""
    least = float("inf")
    for _ in range(round(seconds / 0.25)):
        await asyncio.sleep(0.25)
        least = min(least, (await server.metrics()).total("docket_queue_reads"))
    return least


def key(tenant: str) -> dict[str, str]:
    """The header that says who asks."""
    return {"x-api-key": f"sk-{tenant}"}


def figures(book: Book, seconds: float, least: float, left: str) -> list[Figure]:
    """The rows."""
    fair = sum(book.tokens.values()) / len(CLIENTS)
    shares = {tenant: tokens / fair for tenant, tokens in book.tokens.items()}
    offered = CLIENTS["hog"] / sum(CLIENTS.values())
    told = ", ".join(f"{tenant} {share:.3f}" for tenant, share in shares.items())
    is_fair = all(abs(share - 1) <= TOLERANCE for tenant, share in shares.items() if tenant != "hog")
    return [
        Figure(
            f"hog with {offered:.0%} of the load: computed tokens over the fair share, of "
            f"{sum(book.tokens.values()):,} in {seconds:.0f} s",
            told,
            f"others within {TOLERANCE:.0%}",
            is_fair,
        ),
        Figure("fewest reads that waited meanwhile", f"{least:.0f} of {sum(CLIENTS.values())}"),
        must("requests without an answer", str(len(book.others)), "0", not book.others),
        at_rest(left),
    ]
