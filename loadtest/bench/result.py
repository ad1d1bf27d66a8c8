"""What a section gives: tables, figures that promise something, and words; as Markdown and as JSON."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from scheduling.figure import Figure

COLUMNS = ("what", "figure", "goal", "met")


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of finished cells."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    is_text: bool = False
    """Whether the columns after the first are words rather than figures."""

    def lines(self) -> list[str]:
        """Markdown."""
        rule = ["---", *(["---" if self.is_text else "--:"] * (len(self.columns) - 1))]
        return [_row(self.columns), _row(rule), *(_row(row) for row in self.rows)]


@dataclasses.dataclass
class Result:
    """What a section found. `output` is of a bench that prints a table of its own."""

    tables: list[Table] = dataclasses.field(default_factory=list)
    figures: list[Figure] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    output: str = ""

    @property
    def broken(self) -> int:
        """Promises that were broken."""
        return sum(figure.is_broken for figure in self.figures)

    def markdown(self) -> str:
        """All of it; nothing where there is nothing."""
        parts = ["\n".join(table.lines()) for table in self.tables]
        if self.figures:
            rows = [_cells(figure) for figure in self.figures]
            parts.append("\n".join(Table(COLUMNS, rows, is_text=True).lines()))
        parts += [self.output.strip(), "\n".join(self.notes)]
        return "\n\n".join(part for part in parts if part)

    def json(self, facts: dict[str, Any]) -> str:
        """All of it and what it was measured with."""
        return json.dumps(facts | dataclasses.asdict(self), indent=1, ensure_ascii=False) + "\n"


def _cells(figure: Figure) -> tuple[str, ...]:
    met = {None: "", True: "yes", False: "**BROKEN**" if figure.must else "no"}[figure.met]
    return (figure.what, figure.value, figure.goal, met)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def number(value: float) -> str:
    """Three digits, or all before the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(values: Sequence[float]) -> str:
    """The median, and least to most where there are several."""
    if not values:
        return "-"
    middle = number(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({number(min(values))}-{number(max(values))})"
