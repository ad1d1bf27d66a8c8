"""Pairs of peers, run in turns: A B A' B', then backwards, and so on.

What disturbs a shared machine for longer than a run then disturbs all sides alike, and a ratio is taken
within each round. A' and B' are second processes of the same peers: the ratios A/A' and B/B' show what
the same code differs from itself, so what a ratio A/B must exceed to mean anything.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from .child import Answer, Child
from .work import Work

WARM_UPS = 2
"""Runs of each side that are not counted: the first one makes the work ready."""

SIDES = ("a", "b", "a2", "b2")
"""In the order of a round; a2 and b2 are the second processes."""


@dataclasses.dataclass(frozen=True)
class Peer:
    """One side of a pair."""

    name: str
    model: str
    form: str
    threads: int
    command: tuple[str, ...]


@dataclasses.dataclass
class Series:
    """All rounds of one piece of work: `times[side][round]`."""

    a: Peer
    b: Peer
    work: Work
    times: dict[str, list[Answer]]


def versus(a: Peer, b: Peer, works: Sequence[Work], rounds: int, lines: TextIO | None) -> Iterator[Series]:
    """Runs a pair on each piece of work; every counted run also goes to `lines` as JSON."""
    peers = dict(zip(SIDES, (a, b, a, b), strict=True))
    children: dict[str, Child] = {}
    try:
        for side, peer in peers.items():
            children[side] = Child(f"{peer.name} {peer.form} ({side})", peer.command)
        for work in works:
            ask = _asks(children, work)
            times = _rounds(ask, rounds)
            series = Series(a, b, work, times)
            if lines:
                _record(series, peers, lines)
            yield series
    finally:
        for child in children.values():
            child.close()


def _asks(children: dict[str, Child], work: Work) -> Callable[[str], Answer]:
    """Makes the work ready on all sides; a second process takes the settings which the first chose."""
    settings = {}
    for side, child in children.items():
        settings[side] = settings.get(side.removesuffix("2"))
        for _ in range(WARM_UPS):
            settings[side] = child.ask(work, settings[side]).settings
    return lambda side: children[side].ask(work, settings[side])


def _rounds(ask: Callable[[str], Answer], rounds: int) -> dict[str, list[Answer]]:
    times: dict[str, list[Answer]] = {side: [] for side in SIDES}
    for each in range(rounds):
        for side in SIDES if each % 2 == 0 else reversed(SIDES):
            times[side].append(ask(side))
    return times


def _record(series: Series, peers: dict[str, Peer], lines: TextIO) -> None:
    for side, answers in series.times.items():
        for number, answer in enumerate(answers):
            line = run_line(peers[side], series.work, number, answer)
            lines.write(json.dumps(line | {"side": side}) + "\n")
    lines.flush()


def run_line(peer: Peer, work: Work, number: int, answer: Answer) -> dict[str, object]:
    """One run as a line of JSON."""
    return {
        "peer": peer.name,
        "model": peer.model,
        "format": peer.form,
        "threads": peer.threads,
        "what": work.what,
        **dataclasses.asdict(work),
        "tokens": work.tokens,
        "run": number,
        "seconds": answer.seconds,
        "cpu_seconds": answer.cpu_seconds,
        "settings": answer.settings,
    }
