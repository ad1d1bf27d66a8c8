"""Documents made of facts: some are stated and asked for, some are left out and asked for all the same.

A fact is a line or a sentence with a drawn value; who asks for the number expects the value, who asks
for an excerpt expects the line (of `key: value` the value). All is drawn from one seed.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Drawn = tuple[str, float | None]
"""A value as written, and the number that it is."""

Maker = Callable[[random.Random], Drawn]


@dataclasses.dataclass(frozen=True)
class Fact:
    """`line` has `{}` where the value stands; what is behind a bar in it is all that an excerpt quotes.

    In a family of records `line` is the path of the value's keys.
    """

    line: str
    value: Maker
    number: str = ""
    excerpt: str = ""


@dataclasses.dataclass(frozen=True)
class Family:
    """Documents of a kind."""

    name: str
    language: str
    heads: Sequence[str]
    """Beginnings, one of which is drawn; `{}` is a number that identifies the document."""
    facts: Sequence[Fact]
    fillers: Sequence[str] = ()
    """Lines that nobody asks for."""
    joint: str = "\n"
    is_record: bool = False


@dataclasses.dataclass(frozen=True)
class Ask:
    """A question with its right answer; none: not stated."""

    kind: str
    instructions: str
    gold: float | str | None

    def body(self) -> dict[str, Any]:
        """As a question of a request."""
        return {"type": self.kind, "instructions": self.instructions}


@dataclasses.dataclass(frozen=True)
class Document:
    """A state and what is asked about it."""

    family: str
    language: str
    state: str | Mapping[str, Any]
    asks: Sequence[Ask]

    @property
    def text(self) -> str:
        """The state as the model reads it in the default layout."""
        if isinstance(self.state, str):
            return self.state
        return json.dumps(self.state, ensure_ascii=False)


NUMBERS, EXCERPTS, MISSING = 3, 3, 1
"""Questions of a document: for what it states, and for what it does not."""
LEFT_OUT = 3
"""Facts of a family that a document does not state."""


def document(family: Family, draw: random.Random) -> Document:
    """One of a family."""
    facts = list(family.facts)
    draw.shuffle(facts)
    absent, present = facts[:LEFT_OUT], facts[LEFT_OUT:]
    stated = [(fact, *fact.value(draw)) for fact in present]
    state = (_record if family.is_record else _text)(family, [(f.line, w, n) for f, w, n in stated], draw)
    numbers = [Ask("number", fact.number, value) for fact, _, value in stated if fact.number]
    excerpts = [
        Ask("excerpt", fact.excerpt, _quoted(family, fact, written))
        for fact, written, _ in stated
        if fact.excerpt
    ]
    none = [Ask(kind, words, None) for fact in absent for kind, words in _questions(fact)]
    asks = [*_some(numbers, NUMBERS, draw), *_some(excerpts, EXCERPTS, draw), *_some(none, MISSING, draw)]
    return Document(family.name, family.language, state, asks)


def _questions(fact: Fact) -> list[tuple[str, str]]:
    return [(kind, words) for kind, words in (("number", fact.number), ("excerpt", fact.excerpt)) if words]


def _some(asks: list[Ask], count: int, draw: random.Random) -> list[Ask]:
    return draw.sample(asks, min(count, len(asks)))


def _quoted(family: Family, fact: Fact, written: str) -> str:
    if family.is_record:
        return written
    return fact.line.rpartition("|")[2].format(written).lstrip("- ")


def _text(family: Family, stated: list[tuple[str, str, float | None]], draw: random.Random) -> str:
    lines = [line.replace("|", "").format(written) for line, written, _ in stated]
    lines += draw.sample(list(family.fillers), min(3, len(family.fillers)))
    draw.shuffle(lines)
    head = draw.choice(list(family.heads)).format(draw.randrange(1_000, 9_999))
    return f"{head}\n\n{family.joint.join(lines)}"


def _record(
    family: Family, stated: list[tuple[str, str, float | None]], draw: random.Random
) -> dict[str, Any]:
    record: dict[str, Any] = {"id": draw.choice(list(family.heads)).format(draw.randrange(1_000, 9_999))}
    for path, written, value in stated:
        *outer, last = path.split(".")
        inner = record
        for key in outer:
            inner = inner.setdefault(key, {})
        inner[last] = written if value is None else _plain(value)
    return record


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value


def money(low: int, high: int, *forms: str) -> Maker:
    """An amount; in a form, `{}` is the amount with points, `<>` that with commas as on the continent."""

    def make(draw: random.Random) -> Drawn:
        value = (
            draw.randrange(low * 100, high * 100) / 100 if draw.random() < 0.6 else draw.randrange(low, high)
        )
        point = f"{value:,.2f}" if draw.random() < 0.7 or value != int(value) else f"{int(value):,}"
        # Always with hundredths: 1.234 alone could be read in two ways.
        comma = f"{value:,.2f}".translate(str.maketrans(",.", ".,"))
        form = draw.choice(forms or ("${}", "{} USD", "€{}", "{} EUR"))
        return form.replace("{}", point).replace("<>", comma), float(value)

    return make


def spaced(low: int, high: int, *forms: str) -> Maker:
    """An amount as Russian writes it: spaces between groups, a comma ahead of hundredths."""

    def make(draw: random.Random) -> Drawn:
        value = (
            draw.randrange(low * 100, high * 100) / 100 if draw.random() < 0.5 else draw.randrange(low, high)
        )
        whole, _, part = f"{value:.2f}".partition(".")
        grouped = f"{int(whole):,}".replace(",", " ")
        shown = f"{grouped},{part}" if int(part) else grouped
        return draw.choice(forms).replace("{}", shown), float(value)

    return make


def count(low: int, high: int, form: str = "{}") -> Maker:
    """A whole number."""

    def make(draw: random.Random) -> Drawn:
        value = draw.randrange(low, high)
        return form.format(f"{value:,}" if value >= 10_000 else str(value)), float(value)

    return make


def tenths(low: int, high: int, form: str = "{}", mark: str = ".") -> Maker:
    """A number with one digit behind the mark."""

    def make(draw: random.Random) -> Drawn:
        value = draw.randrange(low * 10 + 1, high * 10) / 10
        return form.format(f"{value:.1f}".replace(".", mark)), value

    return make


def scaled(low: int, high: int, *forms: tuple[str, float]) -> Maker:
    """A number with a word or letter that multiplies it: `2.5 million`, `12k`."""

    def make(draw: random.Random) -> Drawn:
        form, scale = draw.choice(forms)
        tenth = draw.randrange(low * 10, high * 10)
        shown = f"{tenth / 10:.1f}" if tenth % 10 else str(tenth // 10)
        return form.format(shown), round(tenth * scale / 10, 6)

    return make


SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def worded(low: int, high: int, form: str = "{}") -> Maker:
    """A whole number below 1,000 in English words."""

    def make(draw: random.Random) -> Drawn:
        value = draw.randrange(low, high)
        hundreds, rest = divmod(value, 100)
        words = [f"{SMALL[hundreds]} hundred"] if hundreds else []
        if rest or not hundreds:
            small = SMALL[rest] if rest < 20 else "-".join([TENS[rest // 10 - 2], *_unit(rest)])
            words.append(small)
        return form.format(" and ".join(words)), float(value)

    return make


def _unit(rest: int) -> list[str]:
    return [SMALL[rest % 10]] if rest % 10 else []


def one_of(*words: str) -> Maker:
    """A text."""
    return lambda draw: (draw.choice(words), None)
