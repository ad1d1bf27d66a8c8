"""The acceptance lines of scheduling, measured through the running binary.

    scheduling.py all                     every line, about a quarter of an hour; a Markdown table
    scheduling.py all --short             what CI runs: every line for seconds
    scheduling.py urgent                  one of them
    scheduling.py million --requests 200000

It needs `cargo build --release --workspace` and the model (`docket pull smollm2:135m`), and nothing but
Python's standard library. It starts each server itself, on a free port, and stops it by its id. Figures
are a machine's, which the server shares with the generator; so only broken promises end the script with an
error: a request without an answer, a state computed twice or found by another tenant, a gauge that does
not come back to 0, a fault that harms more than it may. A missed time never does.
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

from peers.machine import describe
from scheduling import (
    disconnects,
    faults,
    figure,
    hog,
    million,
    overload,
    shared,
    tenants,
    throughput,
    urgent,
)
from scheduling.bench import Bench
from scheduling.figure import Figure, must
from scheduling.wire import Broken

ROOT = Path(__file__).resolve().parents[2]

LINES = {
    "shared": shared,
    "urgent": urgent,
    "hog": hog,
    "overload": overload,
    "disconnects": disconnects,
    "tenants": tenants,
    "faults": faults,
    "throughput": throughput,
    "million": million,
}


def main() -> int:
    """Runs the lines that were asked for and prints the table."""
    options = _options()
    machine = describe() | {"docket": _version(options.docket)}
    names = list(LINES) if options.line == "all" else [options.line]
    rows, broken = [], 0
    with tempfile.TemporaryDirectory(prefix="docket-scheduling-") as folder:
        bench = Bench(
            docket=options.docket,
            loadtest=options.loadtest,
            model=options.model,
            folder=Path(folder),
            short=options.short,
            requests=options.requests,
        )
        for name in names:
            figures = _measure(name, bench)
            rows += [figure.row(name, one) for one in figures]
            broken += sum(one.is_broken for one in figures)
    _print(machine, rows, options.short)
    return 1 if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    built = ROOT / "target" / "release"
    parser.add_argument("line", choices=["all", *LINES])
    parser.add_argument("--docket", type=Path, default=built / "docket", help="default: %(default)s")
    parser.add_argument("--loadtest", type=Path, default=built / "loadtest", help="default: %(default)s")
    parser.add_argument("--model", default="smollm2:135m", help="default: %(default)s")
    parser.add_argument("--short", action="store_true", help="seconds a line, as in CI")
    parser.add_argument("--requests", type=int, default=1_000_000, help="of `million` (default: %(default)s)")
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


def _print(machine: dict[str, str], rows: list[str], is_short: bool) -> None:
    names = machine | {"load after": ", ".join(f"{load:.1f}" for load in os.getloadavg())}
    if is_short:
        names["run"] = "--short: too short for the figures to be worth more than a glance"
    print("\n".join([*(f"- {name}: {value}" for name, value in names.items()), ""]))
    print("\n".join([*figure.head(), *rows]))


if __name__ == "__main__":
    sys.exit(main())
