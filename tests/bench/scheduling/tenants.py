"""Two tenants and one state: neither finds what the other computed; a tenant finds its own."""

from __future__ import annotations

import asyncio

from .bench import Bench
from .figure import Figure, at_rest, must
from .server import Server
from .wire import decide, request, text

KEYS = ("--api-key", "acme=sk-acme-1", "--api-key", "acme=sk-acme-2", "--api-key", "bolt=sk-bolt")
ACME, ACME_TOO, BOLT = ({"x-api-key": f"sk-{name}"} for name in ("acme-1", "acme-2", "bolt"))
WORDS = 100
QUESTION = "Is it late?"


async def run(bench: Bench) -> list[Figure]:
    """Who asks about a state first, and what the next one finds. The fake engine has a token a byte."""
    async with bench.fake(*KEYS, headers=ACME) as server:
        # The head of a prompt is the same for everybody, and is shared.
        head = (await server.health())["model"]["layout_tokens"]["head"]
        rows = [*await one_after_the_other(server, head), *await at_once(server, head)]
        return [*rows, *await prewarmed(server), at_rest(await server.not_at_rest())]


async def one_after_the_other(server: Server, head: int) -> list[Figure]:
    """A cold state; then the other tenant, then another key of the first one."""
    state = text(WORDS, "tenants")
    found = []
    for headers in (ACME, BOLT, ACME_TOO):
        reply = await decide(server.port, state, QUESTION, headers)
        await server.not_at_rest()
        found.append(reply.number("x-docket-cached-tokens"))
    tokens, (_, other, own) = len(state), found
    return [
        must(
            f"a state of {tokens:,} tokens of one tenant: found by the other, who asks the same",
            f"{other} tokens",
            f"none, but the head of {head}",
            other <= head,
        ),
        must(
            "found by another key of the same tenant", f"{own:,} tokens", f"all ({tokens:,})", own >= tokens
        ),
    ]


async def at_once(server: Server, head: int) -> list[Figure]:
    """Both ask the same at the same moment: two states, and no merged read."""
    state = text(WORDS, "at once")
    before = (await server.metrics()).total("docket_computed_tokens_total")
    both = [decide(server.port, state, QUESTION, headers) for headers in (ACME, BOLT)]
    replies = await asyncio.gather(*both)
    await server.not_at_rest()
    computed = int((await server.metrics()).total("docket_computed_tokens_total") - before)
    least = 2 * len(state)
    each = all(reply.number("x-docket-cached-tokens") <= head for reply in replies)
    return [
        must(
            f"both ask about a cold state of {len(state):,} tokens at once: tokens computed",
            f"{computed:,}",
            f"each for itself (over {least:,})",
            each and computed > least,
        )
    ]


async def prewarmed(server: Server) -> list[Figure]:
    """A prewarm of one is no prewarm of the other, nor is its handle."""
    state = {"state": text(WORDS, "prewarmed")}
    first = (await request(server.port, "/v1/prewarm", state, ACME)).json()
    await server.not_at_rest()
    other = (await request(server.port, "/v1/prewarm", state, BOLT)).json()
    own = (await request(server.port, "/v1/prewarm", state, ACME_TOO)).json()
    path = f"/v1/prewarm/{first['handle']}"
    deleted = [(await request(server.port, path, None, who, "DELETE")).status for who in (BOLT, ACME)]
    reused = [answer["prefix"]["reused"] for answer in (first, other, own)]
    return [
        must(
            "prewarmed by one: reused by the other, by its own",
            f"{reused[1]}, {reused[2]}",
            "False, True",
            reused == [False, False, True],
        ),
        must(
            "its handle deleted by the other, by its own",
            f"{deleted[0]}, {deleted[1]}",
            "404, 200",
            deleted == [404, 200],
        ),
    ]
