"""Checks that the dashboard and the rules of docs/deploy name only what a server shows.

    check.py --url http://127.0.0.1:8000 [--key KEY]   against a running server
    check.py --scrape FILE                             against what one has shown
    check.py --scrape FILE --rules FILE                and write every expression of the dashboard as a
                                                       recording rule, for `promtool check rules`
    check.py --scrape FILE --prometheus URL            and ask a Prometheus that scrapes one (with these
                                                       rules loaded) each of them; those that fail are
                                                       faults, those that give nothing are told

A metric counts as shown if it is in the scrape or in the table of docs/OPERATIONS.md, a label if a series
of its metric has it or its row there says so. Rates are taken of what only rises, alerts say what to do
and name a section that exists, and each is tested. Every fault is told; with one the exit code is 1.
Needs nothing but Python's standard library.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from check import dashboard, promql, rules
from check.shown import Shown

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs" / "deploy"
TIMEOUT_S = 10

# What stands for Grafana's variables where an expression is to be read by Prometheus.
VARIABLES = {"$__rate_interval": "1m", "$__range": "5m", "$instance": ".*", "$job": ".*", "$lane": ".*"}


def main() -> int:
    """Checks what was asked for, and tells the faults."""
    options = _options()
    operations = (ROOT / "docs/OPERATIONS.md").read_text()
    shown = Shown(_scrape(options), operations, (ROOT / "docs/API.md").read_text())
    board = json.loads((DEPLOY / "grafana.json").read_text())
    found = rules.read((DEPLOY / "alerts.yml").read_text())
    tests = (ROOT / "tests/deploy/alerts_test.yml").read_text()
    panels = list(dashboard.queries(board))
    known = {rule.name for rule in found if rule.is_recorded}
    faults = dashboard.faults(board) + rules.faults(found, operations, tests)
    for place, expression, legend in panels:
        faults += promql.faults(place, expression, legend, shown, known)
    for rule in found:
        faults += promql.faults(rule.name, rule.expression, "", shown, known)
    if options.rules:
        Path(options.rules).write_text(_as_rules(panels))
    if options.prometheus:
        faults += _asked(options.prometheus, panels)
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(panels)} expressions of the dashboard, {len(found)} rules: {len(faults)} faults")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--url", help="a running server")
    source.add_argument("--scrape", metavar="FILE", help="metrics text, or - for standard input")
    parser.add_argument("--key", help="a key of the server that may read metrics")
    parser.add_argument("--rules", metavar="FILE", help="write the dashboard's expressions as rules")
    parser.add_argument("--prometheus", metavar="URL", help="a Prometheus to ask each of them")
    return parser.parse_args()


def _scrape(options: argparse.Namespace) -> str:
    if options.scrape == "-":
        return sys.stdin.read()
    if options.scrape:
        return Path(options.scrape).read_text()
    headers = {"authorization": f"Bearer {options.key}"} if options.key else {}
    request = urllib.request.Request(options.url.rstrip("/") + "/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        return response.read().decode()


def _filled(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = re.sub(re.escape(name) + r"\b", value, expression)
    return expression


def _as_rules(panels: list[tuple[str, str, str]]) -> str:
    named = [
        {"record": f"panel:{number}", "expr": _filled(expression)}
        for number, (_, expression, _) in enumerate(panels)
    ]
    # JSON is YAML.
    return json.dumps({"groups": [{"name": "dashboard", "rules": named}]}, indent=1)


def _asked(prometheus: str, panels: list[tuple[str, str, str]]) -> list[str]:
    faults = []
    for place, expression, _ in panels:
        query = urllib.parse.urlencode({"query": _filled(expression)})
        try:
            with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}", timeout=TIMEOUT_S) as response:
                result = json.load(response)["data"]["result"]
        except OSError as error:
            faults.append(f"{place}: {error}")
            continue
        if not result:
            # Some series come only with an event.
            print(f"{place}: nothing comes back for {_filled(expression)}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
