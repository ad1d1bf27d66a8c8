"""The pairs that docket's CPU engine is held to, and by how much it is to be faster in each."""

from __future__ import annotations

import dataclasses

from .formats import SHIPPED
from .work import Prefill, Warm, Work

LENGTHS = (Prefill(64), Prefill(256), Prefill(512), Prefill(1_024))
LONG = (Prefill(512),)
DECISIONS = (Warm(state=500, questions=8, question_tokens=60),)

SMALL = "smollm2-135m"
LARGE = "qwen2.5-coder-1.5b"


@dataclasses.dataclass(frozen=True)
class Pair:
    """docket in a precision against llama.cpp in a format, on one model; `goal` is a least ratio."""

    model: str
    precision: str
    form: str
    works: tuple[Work, ...]
    goal: float | None


PAIRS = (
    Pair(SMALL, "bf16", SHIPPED, LENGTHS, 2.0),
    Pair(SMALL, "int8", SHIPPED, LENGTHS, 3.0),
    Pair(SMALL, "bf16", "BF16", LONG, 1.5),
    Pair(SMALL, "int8", "Q4_0", LONG, 1.8),
    Pair(SMALL, "bf16", SHIPPED, DECISIONS, 2.0),
    Pair(SMALL, "int8", SHIPPED, DECISIONS, 2.0),
    Pair(SMALL, "bf16", "BF16", DECISIONS, 2.0),
    Pair(SMALL, "int8", "Q4_0", DECISIONS, 2.0),
    Pair(SMALL, "int8", "BF16", DECISIONS, 2.0),
    Pair(LARGE, "int8", SHIPPED, LONG, 1.3),
    Pair(LARGE, "auto", SHIPPED, LONG, None),
    Pair(LARGE, "int8", SHIPPED, DECISIONS, 2.0),
)
