"""What a server shows: the series of a scrape, and the table of metrics in docs/OPERATIONS.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \| (.*) \|$", re.MULTILINE)
PARTS = ("_bucket", "_sum", "_count")

# Every series has these, by the scrape.
TARGET = {"job", "instance"}
# Series of Prometheus itself.
OWN = {"up": "gauge"}


@dataclass
class Metric:
    """A series name: its kind, its labels with the values seen, and what the page says of it."""

    kind: str
    labels: dict[str, set[str]] = field(default_factory=dict)
    text: str = ""
    is_seen: bool = False

    def has(self, label: str) -> bool:
        """Whether a series of it may have the label."""
        return label in self.labels or label in TARGET or re.search(rf"\b{label}\b", self.text) is not None


class Shown:
    """All that is shown, by the names of series."""

    def __init__(self, scrape: str, operations: str, api: str) -> None:
        """Reads a scrape, and the pages for what comes only with an event."""
        self._series: dict[str, Metric] = {name: Metric(kind) for name, kind in OWN.items()}
        # Reasons of responses appear with their first.
        self._reasons = set(re.findall(r"`([a-z_]+)`", api))
        for name, kind, text in ROW.findall(operations):
            for part in PARTS if kind == "histogram" else ("",):
                metric = Metric(kind, text=text)
                if part == "_bucket":
                    metric.labels["le"] = set()
                self._series[name + part] = metric
        kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", scrape, re.MULTILINE))
        if not kinds:
            raise SystemExit("the scrape has no metrics")
        for name, labels in filter(None, (_sample(line) for line in scrape.splitlines())):
            base = next((name.removesuffix(part) for part in PARTS if name.removesuffix(part) in kinds), name)
            kind = kinds.get(name) or kinds.get(base, "untyped")
            metric = self._series.setdefault(name, Metric(kind))
            metric.is_seen, metric.kind = True, kind
            for label, value in labels:
                metric.labels.setdefault(label, set()).add(value)

    def get(self, name: str) -> Metric | None:
        """The metric of a series name."""
        return self._series.get(name)

    def can_be(self, name: str, label: str, value: str) -> bool:
        """Whether the label may have the value, as far as can be known."""
        metric = self._series[name]
        if name == "docket_http_requests_total" and label == "reason":
            return value in self._reasons
        comes_later = name.startswith("docket_http_request") or not metric.is_seen or label in TARGET
        return comes_later or value in metric.labels.get(label, set())


def _sample(line: str) -> tuple[str, list[tuple[str, str]]] | None:
    found = SAMPLE.match(line)
    return (found[1], LABEL.findall(found[2] or "")) if found else None
