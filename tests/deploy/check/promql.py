"""The names in an expression of PromQL: series, labels, and what is done with them.

No parser: the words are told apart by what stands beside them, and promtool checks the grammar.
"""

from __future__ import annotations

import re

from check.shown import TARGET, Shown

TOKEN = re.compile(
    r"""\s+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[a-zA-Z_:][\w:]*|\d[\w.]*|[=!]~|[=!<>]=|."""
)
GROUPING = {"by", "without", "on", "ignoring", "group_left", "group_right"}
OPERATORS = {"and", "or", "unless", "offset", "bool", "atan2", "inf", "nan"}
ONLY_RISING = {"rate", "irate", "increase", "resets"}
LEGEND = re.compile(r"\{\{\s*(\w+)\s*\}\}")


class Names:
    """What an expression names."""

    def __init__(self, expression: str) -> None:
        """Reads it."""
        self.groups: set[str] = set()
        # Series name, the function directly around it, and its matchers.
        self.series: list[tuple[str, str, list[tuple[str, str, str]]]] = []
        self._tokens = [token for token in TOKEN.findall(expression) if not token.isspace()]
        around = [""]
        at = 0
        while at < len(self._tokens):
            token, after = self._tokens[at], self._peek(at + 1)
            at += 1
            if token == "(":
                around.append(self._tokens[at - 2] if at > 1 else "")
            elif token == ")":
                around.pop()
            elif token in GROUPING:
                at = self._grouped(at)
            elif re.match(r"[a-zA-Z_:]", token) and token not in OPERATORS:
                # A function, or an aggregation with its grouping in front.
                if after != "(" and after not in GROUPING:
                    matchers: list[tuple[str, str, str]] = []
                    at = self._matched(at, matchers) if after == "{" else at
                    self.series.append((token, around[-1], matchers))

    def _peek(self, at: int) -> str:
        return self._tokens[at] if at < len(self._tokens) else ""

    def _grouped(self, at: int) -> int:
        if self._peek(at) != "(":
            return at
        end = self._tokens.index(")", at)
        self.groups.update(token for token in self._tokens[at + 1 : end] if token != ",")
        return end + 1

    def _matched(self, at: int, matchers: list[tuple[str, str, str]]) -> int:
        end = self._tokens.index("}", at)
        inner = [token for token in self._tokens[at + 1 : end] if token != ","]
        matchers.extend(
            (inner[i], inner[i + 1], inner[i + 2][1:-1]) for i in range(0, len(inner) - 2, 3)
        )
        return end + 1


def faults(place: str, expression: str, legend: str, shown: Shown, recorded: set[str]) -> list[str]:
    """What the expression, or the legend under it, names that is not shown."""
    names = Names(expression)
    told = [] if names.series else [f"{place}: no metric is named in {expression}"]
    has = set(TARGET) | {"le"}
    is_recorded = False
    for name, function, matchers in names.series:
        if name in recorded:
            is_recorded = True
            continue
        metric = shown.get(name)
        if metric is None:
            told.append(f"{place}: there is no metric {name}")
            continue
        has |= metric.labels.keys() | {label for label in names.groups if metric.has(label)}
        if function in ONLY_RISING and metric.kind == "gauge":
            told.append(f"{place}: {function}() of {name}, which is a gauge")
        for label, operator, value in matchers:
            told += [f"{place}: {name}: {fault}" for fault in _unmatched(shown, name, label, operator, value)]
    if not is_recorded:
        wanted = names.groups | set(LEGEND.findall(legend))
        told += [f"{place}: no metric here has the label {label}" for label in sorted(wanted - has)]
    return told


def _unmatched(shown: Shown, name: str, label: str, operator: str, value: str) -> list[str]:
    metric = shown.get(name)
    if metric is None or not metric.has(label):
        return [f"it has no label {label}"]
    if "$" in value or operator in ("!=", "!~"):
        return []
    alternatives = value.split("|") if operator == "=~" else [value]
    literal = [one for one in alternatives if re.fullmatch(r"[\w/.-]*", one)]
    return [f'{label}="{one}" is never shown' for one in literal if not shown.can_be(name, label, one)]
