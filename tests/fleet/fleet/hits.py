"""What it is worth: states found in memory, and how evenly dockets are used, on a load with favourites."""

from __future__ import annotations

from scheduling.figure import Figure, must
from scheduling.wire import ends

from .load import Client, Counted, all_of, counters, grown, in_turn, zipf
from .setting import Setting

STATES, WORKERS = 60, 24
GAIN, BUSIEST = 1.3, 1.3
STEP = ("--fake-step-ms", "2", "--wait-normal", "600s")


async def run(setting: Setting) -> list[Figure]:
    """The same requests in turn, behind each router, each time on dockets that know nothing."""
    asked = zipf(STATES, 600 if setting.short else 3_000, seed=1)
    async with setting.dockets(*STEP) as servers:
        before = await counters(servers)
        replies = await all_of(asked, WORKERS, in_turn(servers))
        plain = grown(before, await counters(servers))
        figures = [_lost("in turn", replies), Figure("found in memory, in turn", _share(plain))]
    async with setting.dockets(*STEP) as servers, setting.gateway(servers) as router:
        figures += await _behind(Client(router), servers, asked, plain)
    if setting.envoy is not None:
        async with setting.dockets(*STEP) as servers, setting.behind_envoy(servers) as router:
            figures += await _behind(Client(router), servers, asked, plain)
        async with setting.dockets(*STEP) as servers:
            async with setting.behind_envoy(servers, bounded=False) as router:
                free = await _behind(Client(router), servers, asked, plain)
                figures += [Figure(f"{one.what}, without a bound", one.value) for one in free[1:]]
    return figures


async def _behind(client: Client, servers, asked, plain: Counted) -> list[Figure]:  # type: ignore[no-untyped-def]
    name = client.router.name
    before = await counters(servers)
    replies = await all_of(asked, WORKERS, client.ask_until)
    found = grown(before, await counters(servers))
    gain = found.hit_share / max(plain.hit_share, 1e-9)
    spread = f"{found.busiest:.2f} ({'/'.join(map(str, found.decisions))})"
    return [
        _lost(name, replies),
        Figure(f"found in memory, {name}", _share(found)),
        Figure(f"times in turn, {name}", f"{gain:.2f}", f">= {GAIN}", gain >= GAIN),
        Figure(f"busiest over mean, {name}", spread, f"<= {BUSIEST}", found.busiest <= BUSIEST),
    ]


def _lost(name: str, replies) -> Figure:  # type: ignore[no-untyped-def]
    met = all(reply.status == 200 for reply in replies)
    return must(f"answers, {name}", ends(replies), "all 200", met)


def _share(counted: Counted) -> str:
    return f"{counted.hit_share:.3f}"
