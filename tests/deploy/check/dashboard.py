"""The dashboard: its expressions, and whether its panels are whole and lie beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 24
DATASOURCE = "${datasource}"
VALUES = re.compile(r"label_values\((?:(.+), *)?(\w+)\)")


def panels(board: dict) -> list[dict]:
    """All panels, those inside of rows too."""
    return [panel for outer in board["panels"] for panel in [outer, *outer.get("panels", [])]]


def queries(board: dict) -> Iterator[tuple[str, str, str]]:
    """Place, expression and legend of every query, those of variables and annotations too."""
    for panel in panels(board):
        for target in panel.get("targets", []):
            yield f"panel {panel['title']!r}", target["expr"], target.get("legendFormat", "")
    for note in board["annotations"]["list"]:
        yield f"annotation {note['name']!r}", note["expr"], note.get("textFormat", "")
    for variable in board["templating"]["list"]:
        if variable["type"] != "query":
            continue
        found = VALUES.fullmatch(variable["query"]["query"])
        if found and found[1]:
            yield f"variable {variable['name']!r}", found[1], "{{%s}}" % found[2]


def faults(board: dict) -> list[str]:
    """What is wrong with the dashboard, whatever its expressions name."""
    told = []
    variables = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval", "__range"}
    for place, expression, _ in queries(board):
        unknown = set(re.findall(r"\$\{?(\w+)", expression)) - variables
        told += [f"{place}: there is no variable {name}" for name in sorted(unknown)]
    ids = [panel["id"] for panel in panels(board)]
    told += [f"the panel id {one} is there twice" for one in sorted(set(ids)) if ids.count(one) > 1]
    for panel in panels(board):
        if panel["type"] != "row":
            told += [f"panel {panel.get('title')!r}: {fault}" for fault in _panel(panel)]
    return told + _overlaps(panels(board))


def _panel(panel: dict) -> Iterator[str]:
    if not panel.get("title") or not panel.get("description"):
        yield "title or description is missing"
    if not panel.get("targets"):
        yield "it asks for nothing"
    if not panel.get("fieldConfig", {}).get("defaults", {}).get("unit"):
        yield "its unit is missing"
    for one in [panel, *panel.get("targets", [])]:
        if one.get("datasource", {}).get("uid") != DATASOURCE:
            yield f"the datasource is not {DATASOURCE}"
    names = [target.get("refId") for target in panel.get("targets", [])]
    if len(set(names)) < len(names) or None in names:
        yield "a refId is missing or there twice"


def _overlaps(found: list[dict]) -> list[str]:
    taken: dict[tuple[int, int], str] = {}
    told = []
    for panel in found:
        at, title = panel["gridPos"], panel["title"]
        if at["x"] + at["w"] > WIDTH:
            told.append(f"panel {title!r} is beyond the right edge")
        cells = [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
        others = {taken[cell] for cell in cells if cell in taken}
        told += [f"panels {title!r} and {other!r} overlap" for other in sorted(others)]
        taken |= dict.fromkeys(cells, title)
    return told
