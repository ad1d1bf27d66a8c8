"""What answers are worth: numbers, excerpts, and what is not stated, a family at a time."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from .documents import Ask, Document


@dataclasses.dataclass
class Score:
    """Counts of a family."""

    numbers: int = 0
    exact_numbers: int = 0
    excerpts: int = 0
    exact_excerpts: int = 0
    near_excerpts: int = 0
    missing: int = 0
    seen_missing: int = 0
    false_missing: int = 0
    wrong_offsets: int = 0

    def add(self, document: Document, ask: Ask, answer: Mapping[str, Any]) -> None:
        """Counts one answer."""
        given = answer["value" if ask.kind == "number" else "text"]
        self.wrong_offsets += not offsets_hold(document.text, answer)
        if ask.gold is None:
            self.missing += 1
            self.seen_missing += given is None
            return
        self.false_missing += given is None
        if ask.kind == "number":
            self.numbers += 1
            self.exact_numbers += is_exact(ask, given)
        else:
            self.excerpts += 1
            self.exact_excerpts += is_exact(ask, given)
            self.near_excerpts += is_near(str(ask.gold), given)

    def __add__(self, other: Score) -> Score:
        """The counts of both."""
        mine, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return Score(*(one + another for one, another in zip(mine, theirs, strict=True)))

    def cells(self) -> list[str]:
        """The columns of the table."""
        return [
            _share(self.exact_numbers, self.numbers),
            _share(self.exact_excerpts, self.excerpts),
            _share(self.near_excerpts, self.excerpts),
            _share(self.seen_missing, self.missing),
            _share(self.false_missing, self.numbers + self.excerpts),
            str(self.wrong_offsets),
        ]


COLUMNS = (
    "family",
    "number exact",
    "excerpt exact",
    "excerpt contains",
    "not stated found",
    "falsely not stated",
    "wrong offsets",
)


def is_exact(ask: Ask, given: object) -> bool:
    """Whether this is the right answer."""
    if isinstance(ask.gold, float) and isinstance(given, (int, float)):
        return math.isclose(ask.gold, given, rel_tol=1e-9, abs_tol=1e-12)
    return ask.gold == given


def is_near(gold: str, given: object) -> bool:
    """Whether one of the texts contains the other."""
    return isinstance(given, str) and bool(given) and (gold in given or given in gold)


def offsets_hold(text: str, answer: Mapping[str, Any]) -> bool:
    """Whether what an excerpt quotes stands where it says; Python's strings count code points too."""
    if answer["type"] != "excerpt" or answer["text"] is None:
        return True
    parts = answer.get("parts") or [answer]
    return all(text[part["start"] : part["end"]] == part["text"] for part in parts)


def table(answered: Iterable[tuple[Document, Ask, Mapping[str, Any]]]) -> tuple[list[str], Score]:
    """A line of Markdown for each family, each language and all; and the counts of all."""
    families: defaultdict[str, Score] = defaultdict(Score)
    languages: defaultdict[str, Score] = defaultdict(Score)
    for document, ask, answer in answered:
        families[document.family].add(document, ask, answer)
        languages[document.language].add(document, ask, answer)
    total = sum(languages.values(), Score())
    rows = [*families.items(), *((f"all {name}", score) for name, score in languages.items())]
    lines = [_row(COLUMNS), _row(["---"] * len(COLUMNS))]
    lines += [_row([name, *score.cells()]) for name, score in [*rows, ("**all**", total)]]
    return lines, total


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part} of {whole})" if whole else "-"
