"""What is timed: one prefill, or warm decisions on a kept state; and the token ids of both.

Every peer is asked for the same work in the same JSON, and makes the same token ids from it, so that
both sides of a pair read the same prompts.
"""

from __future__ import annotations

import dataclasses
from typing import Any

STATE = 0
"""Which text of a piece of work is the state (or the prefill); questions are 1, 2, and so on."""

IDS = 49_152
"""Ids are below this: SmolLM2's vocabulary, and every larger one has them too."""


class PeerError(Exception):
    """A peer cannot be started, or does not answer as agreed."""


def token_ids(text: int, count: int) -> list[int]:
    """Ids of a text without a pattern that a cache could use; tests/bench/engine.rs has the same."""
    return [(text * 1_009 + index) * 7_919 % IDS for index in range(count)]


@dataclasses.dataclass(frozen=True)
class Prefill:
    """Reading a prompt of `tokens` from nothing, with the scores of its last position."""

    tokens: int

    what = "prefill"
    unit = "tokens"

    @property
    def units(self) -> int:
        """Tokens read in one run."""
        return self.tokens

    @property
    def name(self) -> str:
        """As in a table."""
        return f"prefill of {self.tokens:,}"


@dataclasses.dataclass(frozen=True)
class Warm:
    """Questions about a state that was read before and kept; scores at each question's end."""

    state: int
    questions: int
    question_tokens: int

    what = "warm"
    unit = "decisions"

    @property
    def tokens(self) -> int:
        """Tokens read in one run: the state is not read again."""
        return self.questions * self.question_tokens

    @property
    def units(self) -> int:
        """Decisions of one run."""
        return self.questions

    @property
    def name(self) -> str:
        """As in a table."""
        return f"{self.questions} questions of {self.question_tokens} on {self.state}"


Work = Prefill | Warm


def request_of(work: Work) -> dict[str, Any]:
    """The line which asks a peer for one run."""
    return {"what": work.what, **dataclasses.asdict(work)}


def work_of(request: dict[str, Any]) -> Work:
    """The work that a line asks for."""
    kinds = {kind.what: kind for kind in (Prefill, Warm)}
    kind = kinds.get(request.get("what", ""))
    if kind is None:
        raise PeerError(f"what is {request.get('what')!r}, not one of {sorted(kinds)}")
    try:
        return kind(**{field.name: int(request[field.name]) for field in dataclasses.fields(kind)})
    except (KeyError, TypeError, ValueError) as error:
        raise PeerError(f"a request of {kind.what} lacks a number: {error}") from error


def parse_work(text: str) -> Work:
    """`prefill:512` or `warm:500x8x60` (state, questions, tokens of a question)."""
    what, _, sizes = text.partition(":")
    numbers = [int(size) for size in sizes.split("x")]
    if what == "prefill" and len(numbers) == 1 and min(numbers) > 0:
        return Prefill(*numbers)
    if what == "warm" and len(numbers) == 3 and min(numbers) > 0:
        return Warm(*numbers)
    raise ValueError(f"{text!r} is neither prefill:TOKENS nor warm:STATExQUESTIONSxTOKENS")
