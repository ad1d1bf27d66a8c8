"""The faults that a server is given, and what is to become of it.

To add one, add a line. Every case is asked the same decisions, in waves of eight at once: of each wave one
has a question with POISON in it, and one a state with VENOM in it.
"""

from __future__ import annotations

import dataclasses

POISON, VENOM = "poison", "venom"
POISONED, VENOMOUS = 3, 5
"""Their places in a wave."""

SOFTWARE_ERROR = 70
"""The exit code of a server whose engine is dead."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A fault, and what is to be seen of it."""

    fault: str
    flags: tuple[str, ...] = ()
    timeout_ms: int = 30_000
    harmed: int | None = None
    """The place in each wave of the request that fails with 500; none fails if there is none."""
    statuses: frozenset[int] = frozenset({200})
    """The ends that the others may have."""
    seen: frozenset[int] = frozenset({200})
    """Those of them that must be seen."""
    failed_steps: int | None = None
    """`docket_engine_failures_total` afterwards, where it can be known."""
    readiness: frozenset[int] = frozenset({200})
    """Statuses that /health?ready=1 may have meanwhile; the last is 200, unless the server dies."""
    stalls: bool = False
    """503 must be among them."""
    lost: str = ""
    """The actor that is lost, once."""
    dies: bool = False
    """The server ends by itself, with 70, after saying why."""


SOUND = Case("", failed_steps=0)

LATE = frozenset({200, 504})
RETRIED = frozenset({200, 503})
DYING = frozenset({200, 500, 503})
STALL = ("--stall-after", "300ms")

STEPS = (
    Case("panic@5", failed_steps=1),
    Case("panic@1", failed_steps=1),
    Case("error@5", failed_steps=1),
    Case("nan@5", failed_steps=0),
    Case("oom@5"),
    Case("hang@5", ("--drain-timeout", "1s"), 1_000, statuses=LATE, seen=LATE),
)
"""One step each, by its number."""

PLACES = (
    Case(f"panic@row~{POISON}", harmed=POISONED),
    Case(f"error@row~{POISON}", harmed=POISONED),
    Case(f"nan@row~{POISON}", harmed=POISONED),
    Case(f"panic@state~{VENOM}", harmed=VENOMOUS),
    Case(f"error@state~{VENOM}", harmed=VENOMOUS),
    Case(f"nan@state~{VENOM}", harmed=VENOMOUS),
    Case("oom@over~300"),
    Case("hang@5=1500ms", STALL, readiness=RETRIED, stalls=True),
    Case("scheduler@5", statuses=RETRIED, readiness=RETRIED, lost="scheduler"),
    Case("cache@5", statuses=RETRIED, readiness=RETRIED, lost="cache"),
    Case("registration@5", lost="registration"),
    Case("panic@9+", statuses=DYING, seen=frozenset({200, 503}), readiness=RETRIED, dies=True),
    Case("scheduler@1+", statuses=RETRIED, seen=frozenset({503}), readiness=RETRIED, dies=True),
)
"""What else a place can be, and what is not a step; only of a binary that knows them."""

SHORT = ("panic@5", "nan@5", "hang@5", f"error@row~{POISON}", f"panic@state~{VENOM}", "cache@5", "panic@9+")
"""The ones that CI asks."""
