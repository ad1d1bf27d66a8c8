"""The acceptance lines of decisio's abilities, measured through the running binary.

    decisio.py all --model smollm2:135m every line, on a quiet machine about ten minutes; a Markdown table
    decisio.py tasks                    one of them, on the default model
    decisio.py stages --requests 300    fewer than the 1,000 answers in each of its places
    decisio.py short                    what CI runs: every line on the fake engine, for seconds

It needs `cargo build --release` and, but for `short`, the models (`docket pull qwen2.5-coder:1.5b`, `docket
pull smollm2:135m`), and nothing but Python's standard library. It starts each server itself, on a free
port, and stops it by its id. A missed time never ends the script with an error; a broken promise does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from decisio import health, stages, tasks
from decisio.bench import Bench
from peers.machine import describe
from scheduling import figure
from scheduling.figure import Figure, must
from scheduling.wire import Broken

ROOT = Path(__file__).resolve().parents[2]

LINES = {"stages": stages, "tasks": tasks, "health": health}


def main() -> int:
    """Runs the lines that were asked for and prints the table."""
    options = _options()
    is_short = options.line == "short"
    machine = describe() | {"docket": _version(options.docket)}
    machine["model"] = (
        "the fake engine: too short to be worth more than a glance" if is_short else options.model
    )
    rows, broken = [], 0
    with tempfile.TemporaryDirectory(prefix="docket-decisio-") as folder:
        for name in LINES if options.line in ("all", "short") else [options.line]:
            inner = Path(folder) / name
            inner.mkdir()
            figures = _measure(name, Bench(options.docket, options.model, inner, is_short, options.requests))
            rows += [figure.row(name, one) for one in figures]
            broken += sum(one.is_broken for one in figures)
    machine["load after"] = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print("\n".join([*(f"- {name}: {value}" for name, value in machine.items()), "", *figure.head(), *rows]))
    return 1 if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    docket = ROOT / "target" / "release" / "docket"
    parser.add_argument("line", choices=["all", "short", *LINES])
    parser.add_argument("--docket", type=Path, default=docket, help="default: %(default)s")
    parser.add_argument("--model", default="qwen2.5-coder:1.5b", help="default: %(default)s")
    parser.add_argument("--requests", type=int, default=1_000, help="of `stages` (default: %(default)s)")
    return parser.parse_args()


def _measure(name: str, bench: Bench) -> list[Figure]:
    """The rows of a line; what keeps it from being measured is a broken promise too."""
    began = time.monotonic()
    try:
        figures: list[Figure] = asyncio.run(LINES[name].run(bench))
    except Broken as fault:
        figures = [must("could be measured", str(fault), "yes", met=False)]
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return figures


def _version(docket: Path) -> str:
    try:
        done = subprocess.run([docket, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{docket} does not run: {error}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
