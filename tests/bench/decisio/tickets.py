"""Made-up questions that come again and again, with labelled examples: the same at every run."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .texts import INTENTS, TEAMS

EXAMPLES_OF_EACH = 6


@dataclasses.dataclass(frozen=True)
class Question:
    """A question with a text and the right answer for each time it was asked."""

    id: str
    instructions: str
    options: tuple[str, ...]
    examples: tuple[tuple[str, str], ...]
    later: tuple[tuple[str, str], ...]

    def asked(self, state: str) -> dict[str, Any]:
        """A request's body."""
        criteria = dict.fromkeys(self.options)
        asked = {"type": "choice", "instructions": self.instructions, "criteria": criteria}
        return {"state": state, "questions": {"q": asked}}

    def task(self) -> dict[str, Any]:
        """The body that registers it."""
        examples = [{"request": self.asked(state), "answer": answer} for state, answer in self.examples]
        return {"id": self.id, "examples": examples}


def routing(skewed: bool) -> Question:
    """60 examples, four options; skewed, four of five have one answer whatever their text says."""
    pairs = _drawn(TEAMS)
    if skewed:
        pairs = [(text, gold if number % 5 == 0 else "access") for number, (text, gold) in enumerate(pairs)]
    parts = tuple(pairs[:60]), tuple(pairs[60:])
    return Question("ticket-routing", "Which team takes this ticket?", tuple(TEAMS), *parts)


def intents() -> Question:
    """Six examples of each of ten options."""
    seen: Counter[str] = Counter()
    parts: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for text, gold in _drawn(INTENTS):
        parts[seen[gold] >= EXAMPLES_OF_EACH].append((text, gold))
        seen[gold] += 1
    examples, later = parts
    what = "What does the customer want?"
    return Question("bank-intents", what, tuple(INTENTS), tuple(examples), tuple(later))


def _drawn(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    pairs = [(text, gold) for gold, lines in texts.items() for text in lines.splitlines()]
    random.Random("tickets").shuffle(pairs)
    return pairs
