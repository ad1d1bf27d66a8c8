"""Slow clients and bombs against the running binary: what they cost those who behave.

    slow.py clients                       64 clients that send a byte a second and 200 stalled uploads:
                                          /health and decisions with and without them, in turns
    slow.py bombs                         bodies that unpack to 1 GB: refusals, and how memory grows
    slow.py all --short                   both, for seconds
    slow.py all --docket PATH

It needs a built binary and nothing but Python's standard library; the engine is the fake one. The server
is started on a free port and stopped by its id. Figures are a machine's, which the server shares with the
clients; so a missed time does not end the script with an error, and what is not answered or not refused does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from peers.machine import describe
from scheduling import figure
from scheduling.bench import Bench
from scheduling.figure import Figure, must
from scheduling.wire import Broken
from slow import bombs, clients

ROOT = Path(__file__).resolve().parents[2]

LINES = {"clients": clients, "bombs": bombs}


def main() -> int:
    """Runs the lines that were asked for and prints the table."""
    options = _options()
    machine = describe()
    names = list(LINES) if options.line == "all" else [options.line]
    rows, broken = [], 0
    with tempfile.TemporaryDirectory(prefix="docket-slow-") as folder:
        for name in names:
            bench = Bench(options.docket, Path(), "", Path(folder), options.short, 0)
            figures = _measure(name, bench)
            rows += [figure.row(name, one) for one in figures]
            broken += sum(one.is_broken for one in figures)
    machine |= {"load after": ", ".join(f"{load:.1f}" for load in os.getloadavg())}
    print("\n".join([*(f"- {name}: {value}" for name, value in machine.items()), ""]))
    print("\n".join([*figure.head(), *rows]))
    return 1 if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("line", choices=["all", *LINES])
    built = ROOT / "target" / "release" / "docket"
    parser.add_argument("--docket", type=Path, default=built, help="default: %(default)s")
    parser.add_argument("--short", action="store_true", help="seconds a line")
    return parser.parse_args()


def _measure(name: str, bench: Bench) -> list[Figure]:
    """The rows of a line; what keeps it from being measured is a broken promise too."""
    try:
        return asyncio.run(LINES[name].run(bench))
    except Broken as fault:
        return [must("could be measured", str(fault), "yes", met=False)]


if __name__ == "__main__":
    sys.exit(main())
