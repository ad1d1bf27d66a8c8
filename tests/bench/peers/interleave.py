"""Pairs of peers, run in turns: A B A' B', then backwards, and so on.

What disturbs a shared machine for longer than a run then disturbs all sides alike, and a ratio is taken
within each round. A' and B' are second processes of the same peers: the ratios A/A' and B/B' show what
the same code differs from itself, so what a ratio A/B must exceed to mean anything.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

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
    chooses: bool = False
    """Whether it has settings to choose from: then a first process does that and ends."""


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
    settings = {peer: chosen(peer, works) for peer in (a, b)}
    children: dict[str, Child] = {}
    try:
        for side, peer in peers.items():
            children[side] = Child(f"{peer.name} {peer.form} ({side})", peer.command)
        for work in works:
            wanted = {side: settings[peer].get(work) for side, peer in peers.items()}
            series = Series(a, b, work, _rounds(children, work, wanted, rounds))
            if lines:
                _record(series, peers, lines)
            yield series
    finally:
        for child in children.values():
            child.close()


def chosen(peer: Peer, works: Sequence[Work]) -> dict[Work, dict[str, Any] | None]:
    """The fastest settings for each piece of work, found in a process of its own.

    A process that had tried several was once seen to run a tenth slower than a fresh one with the same.
    """
    if not peer.chooses:
        return {}
    child = Child(f"{peer.name} {peer.form}", peer.command)
    try:
        return {work: child.ask(work).settings for work in works}
    finally:
        child.close()


def _rounds(
    children: dict[str, Child], work: Work, wanted: dict[str, dict[str, Any] | None], rounds: int
) -> dict[str, list[Answer]]:
    for side, child in children.items():
        for _ in range(WARM_UPS):
            child.ask(work, wanted[side])
    times: dict[str, list[Answer]] = {side: [] for side in SIDES}
    for each in range(rounds):
        for side in SIDES if each % 2 == 0 else reversed(SIDES):
            times[side].append(children[side].ask(work, wanted[side]))
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
