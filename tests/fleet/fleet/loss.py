"""A docket is killed under load: only its states move, and no client that comes back is left without an answer."""

from __future__ import annotations

import asyncio

from scheduling.figure import Figure, must
from scheduling.wire import ends

from .load import Client, all_of, homes, zipf
from .setting import DOCKETS, Router, Setting

WORKERS = 12
PROBED_OUT_S = 8
"""After this a dead docket is known to be out: probes every 2 s, two of which fail."""


async def run(setting: Setting) -> list[Figure]:
    """For each router on dockets of its own."""
    names = ["gateway"] + (["envoy"] if setting.envoy is not None else [])
    figures = []
    for name in names:
        async with setting.dockets("--fake-step-ms", "2") as servers:
            behind = setting.gateway(servers) if name == "gateway" else setting.behind_envoy(servers)
            async with behind as router:
                figures += await _killed(setting, servers, router)
    return figures


async def _killed(setting: Setting, servers, router: Router) -> list[Figure]:  # type: ignore[no-untyped-def]
    states = 24 if setting.short else 60
    client = Client(router)
    if router.sends_key:
        await homes(client, servers, states)
    before = await homes(client, servers, states)
    asked = zipf(states, 300 if setting.short else 1_200, seed=2)
    load = asyncio.create_task(all_of(asked, WORKERS, client.ask_until))
    await asyncio.sleep(0.3)
    dead = servers[1]
    dead.process.kill()
    await asyncio.to_thread(dead.process.wait)
    replies = await load
    await asyncio.sleep(PROBED_OUT_S)
    left = [server for server in servers if server is not dead]
    after = [(0, 2)[home] if home >= 0 else -1 for home in await homes(client, left, states)]
    moved = [old for old, new in zip(before, after, strict=True) if old != new]
    others = sum(old != 1 for old in moved)
    share = len(moved) / states
    return [
        must(
            f"lost after the clients' retries, {router.name}",
            ends(replies),
            "all 200",
            all(reply.status == 200 for reply in replies),
        ),
        must(f"states of others that moved, {router.name}", str(others), "0", others == 0),
        Figure(
            f"states that moved, {router.name}",
            f"{len(moved)} of {states}",
            f"<= {1 / DOCKETS:.2f}, as they fall",
            share <= 1 / DOCKETS + 0.1,
        ),
    ]
