"""A row of the table: what was measured, what it should be, and whether a miss breaks a promise."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

COLUMNS = ("line", "what", "figure", "goal", "met")


@dataclasses.dataclass(frozen=True)
class Figure:
    """`met` is none where there is no goal. What `must` be met ends the script with an error if it is not."""

    what: str
    value: str
    goal: str = ""
    met: bool | None = None
    must: bool = False

    @property
    def is_broken(self) -> bool:
        """Whether a promise was broken, which no slow machine excuses."""
        return self.must and self.met is False


def must(what: str, value: str, goal: str, met: bool) -> Figure:
    """Correctness."""
    return Figure(what, value, goal, met, must=True)


def at_rest(left: str) -> Figure:
    """That the gauges came back to 0."""
    return must("gauges that are not back to 0", left or "none", "none", not left)


def row(line: str, figure: Figure) -> str:
    """One line of Markdown."""
    met = {None: "", True: "yes", False: "**BROKEN**" if figure.must else "no"}[figure.met]
    return _cells((line, figure.what, figure.value, figure.goal, met))


def head() -> list[str]:
    """The first two lines of the table."""
    return [_cells(COLUMNS), _cells(["---"] * len(COLUMNS))]


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def middle(values: Sequence[float]) -> float:
    """The value in the middle, the upper one of two."""
    return sorted(values)[len(values) // 2]
