"""Whether one tenant can tell, by time and headers, that a state of another is resident.

A trial: the victim asks about a state, the same that the attacker guesses or another of equal length, by
the toss of a coin. Then the attacker asks about the guess, and what it sees is kept: how long it took,
by its own clock and by the server's headers, and the tokens found. The toss is what a classifier has to
guess. Both kinds are interleaved, so that the machine's moods fall on both.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Mapping
from pathlib import Path

from scheduling.server import Server
from scheduling.wire import Broken, Reply, decide, text

from . import auc

WORDS = 120
QUESTION = "Is it late?"
HEADERS = (
    "x-docket-queue-ms",
    "x-docket-state-ms",
    "x-docket-engine-ms",
    "x-docket-total-ms",
    "x-docket-computed-tokens",
    "x-docket-cached-tokens",
)


@dataclasses.dataclass(frozen=True)
class Result:
    """What the classifier made of the trials."""

    trials: int
    area: float
    low: float
    high: float
    by_time_alone: float
    halves: tuple[tuple[float, float, float], ...] = ()
    """The AUC of each half and its bounds, by a fit on the other."""

    def line(self, who: str) -> str:
        """A row of the table."""
        interval = f"{self.area:.3f} ({self.low:.3f} to {self.high:.3f})"
        halves = ", ".join(f"{area:.3f} ({low:.3f} to {high:.3f})" for area, low, high in self.halves)
        return f"| {who} | {self.trials:,} | {interval} | {halves} | {self.by_time_alone:.3f} |"


@dataclasses.dataclass(frozen=True)
class Trials:
    """How many trials there are to be, which, and where they are kept."""

    count: int
    seed: int
    kept: Path | None = None
    """A file of JSON lines, a trial each: a run that was cut short goes on behind its last."""

    def before(self) -> list[tuple[list[float], bool]]:
        """Those of earlier runs."""
        if self.kept is None or not self.kept.exists():
            return []
        lines = (json.loads(line) for line in self.kept.read_text().splitlines())
        return [(line["features"], line["held"]) for line in lines][: self.count]

    def keep(self, features: list[float], is_held: bool) -> None:
        """Adds one."""
        if self.kept is not None:
            with self.kept.open("a") as file:
                file.write(json.dumps({"features": features, "held": is_held}) + "\n")


async def measured(
    server: Server, victim: Mapping[str, str], attacker: Mapping[str, str], trials: Trials
) -> Result:
    """Runs the trials that are not there yet."""
    seed, known = trials.seed, trials.before()
    for trial in range(len(known), trials.count):
        guess = text(WORDS, f"{seed}-{trial}")
        is_held = random.Random(f"{seed}-{trial}").random() < 0.5
        asked = guess if is_held else text(WORDS, f"{seed}-{trial}-other")
        answered(await decide(server.port, asked, QUESTION, victim))
        reply = answered(await decide(server.port, guess, QUESTION, attacker))
        seen = [reply.seconds * 1e3, *(float(reply.headers.get(name, 0)) for name in HEADERS)]
        trials.keep(seen, is_held)
        known.append((seen, is_held))
    features, held = [seen for seen, _ in known], [is_held for _, is_held in known]
    scores = auc.held_out_scores(features, held, seed)
    low, high = auc.bounds(scores, held)
    slow = auc.auc([row[0] for row in features], held)
    halves = tuple(auc.halves(features, held))
    return Result(trials.count, auc.auc(scores, held), low, high, max(slow, 1 - slow), halves)


def answered(reply: Reply) -> Reply:
    """The reply, which must be an answer."""
    if reply.status != 200:
        raise Broken(f"a trial ended with {reply.end}: {reply.body[:200]!r}")
    return reply


def saved(path: Path, results: Mapping[str, Result]) -> None:
    """Keeps the results as JSON."""
    path.write_text(json.dumps({name: dataclasses.asdict(one) for name, one in results.items()}, indent=1))
