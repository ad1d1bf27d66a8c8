"""The rules of a file for Prometheus, as far as the checks need them.

Read by line, since Python has no YAML of its own; promtool checks that it is some.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

HEAD = re.compile(r"^( *)- (record|alert): (\S+)$")
FIELD = re.compile(r"^ *(expr|severity|summary|action|runbook): *(.*)$")
SEVERITIES = {"critical", "warning", "info"}


@dataclass
class Rule:
    """A rule: its name, its expression, and of an alert the texts."""

    name: str
    is_recorded: bool
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def expression(self) -> str:
        """The expression, on one line."""
        return self.fields.get("expr", "")


def read(text: str) -> list[Rule]:
    """All rules of the text."""
    found: list[Rule] = []
    block, indent = "", 0
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        head, pair = HEAD.match(line), FIELD.match(line)
        if block and depth > indent:
            found[-1].fields[block] += " " + line.strip()
            continue
        block = ""
        if head:
            found.append(Rule(head[3], head[2] == "record"))
        elif pair and found:
            is_block = pair[2] in ("|", ">-", ">")
            block, indent = (pair[1] if is_block else ""), depth
            found[-1].fields[pair[1]] = "" if is_block else pair[2].strip("\"'")
    return found


def faults(found: list[Rule], operations: str, tests: str) -> list[str]:
    """What alerts lack."""
    headings = set(re.findall(r"^#+ (.+)$", operations, re.MULTILINE))
    told = [] if any(not rule.is_recorded for rule in found) else ["there are no alerts"]
    for rule in found:
        if rule.is_recorded:
            if rule.name not in tests:
                told.append(f"{rule.name}: no test")
            continue
        if rule.fields.get("severity") not in SEVERITIES:
            told.append(f"{rule.name}: severity is none of {sorted(SEVERITIES)}")
        told += [f"{rule.name}: no {name}" for name in ("summary", "action", "runbook") if not rule.fields.get(name)]
        page, _, section = rule.fields.get("runbook", "").partition(": ")
        if page != "docs/OPERATIONS.md" or section not in headings:
            told.append(f"{rule.name}: docs/OPERATIONS.md has no section {section!r}")
        if f'alertname="{rule.name}"' not in tests:
            told.append(f"{rule.name}: no test in which it fires")
    return told
