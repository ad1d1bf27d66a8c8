"""Requests on a state go to one docket, whoever asks and whenever."""

from __future__ import annotations

from scheduling.figure import Figure, must

from .load import Client, homes
from .setting import Router, Setting


async def run(setting: Setting) -> list[Figure]:
    """One after the other, so that nobody is passed over for what it has to do."""
    states = 20 if setting.short else 60
    figures = []
    async with setting.dockets("--fake-step-ms", "0") as servers:
        async with setting.routers(servers) as routers:
            for router in routers:
                client = Client(router)
                # What makes no keys goes by those of the second request on.
                await homes(client, servers, states if router.sends_key else 0)
                first = await homes(client, servers, states)
                second = await homes(client, servers, states)
                same = sum(one == other != -1 for one, other in zip(first, second, strict=True))
                value = f"{same} of {states}, over {len(set(first))} dockets"
                goal = f"{states} of {states}"
                figures.append(must(f"states that stay, {router.name}", value, goal, same == states))
        figures.append(await _began_to_send(setting, servers, states))
    return figures


async def _began_to_send(setting: Setting, servers, states: int) -> Figure:  # type: ignore[no-untyped-def]
    """A client of a gateway that begins to send the key is not moved."""
    async with setting.gateway(servers) as router:
        silent = Client(router)
        before = await homes(silent, servers, states)
        telling = Client(Router(router.name, router.port, sends_key=True), dict(silent.keys))
        after = await homes(telling, servers, states)
    same = sum(one == other != -1 for one, other in zip(before, after, strict=True))
    what = "states that stay when clients begin to send the key"
    return must(what, f"{same} of {states}", f"{states} of {states}", same == states)
