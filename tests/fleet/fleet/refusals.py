"""Too much at once: every refusal says when to come back, and who does is answered."""

from __future__ import annotations

import asyncio

from scheduling.figure import Figure, must
from scheduling.wire import ends

from .load import Client
from .setting import Router, Setting

SMALL = ("--fake-step-ms", "20", "--reads-max", "64", "--rows-max", "8", "--wait-normal", "2s")


async def run(setting: Setting) -> list[Figure]:
    """A burst that the dockets together have no room for."""
    names = ["gateway"] + (["envoy"] if setting.envoy is not None else [])
    figures = []
    for name in names:
        async with setting.dockets(*SMALL) as servers:
            behind = setting.gateway(servers) if name == "gateway" else setting.behind_envoy(servers)
            async with behind as router:
                figures += await _burst(setting, router)
    return figures


async def _burst(setting: Setting, router: Router) -> list[Figure]:
    count = 300 if setting.short else 900
    client = Client(router)
    replies = await asyncio.gather(*(client.ask_until(state) for state in range(count)))
    refused = [reply for reply in client.replies if reply.status in (429, 503)]
    silent = [reply for reply in refused if "retry-after" not in reply.headers]
    return [
        must(
            f"refusals that do not say when to come back, {router.name}",
            f"{len(silent)} of {len(refused)}",
            "0",
            not silent,
        ),
        must(
            f"left without an answer after the clients' retries, {router.name}",
            ends(list(replies)),
            "all 200",
            all(reply.status == 200 for reply in replies),
        ),
        Figure(f"refusals that clients saw, {router.name}", f"{len(refused)} for {count} requests"),
    ]
