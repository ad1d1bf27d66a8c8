"""Three dockets behind Envoy and behind `docket gateway`, measured through the running binaries.

    python3 tests/fleet all --envoy PATH          every line, some minutes; a Markdown table
    python3 tests/fleet all --envoy PATH --short  every line for seconds
    python3 tests/fleet hits                      one of them; without --envoy, behind `docket gateway` only
    python3 tests/fleet files --tools FOLDER      the files of docs/deploy by their own tools

It needs `cargo build --release`, and nothing but Python's standard library; the dockets have the fake
engine. README.md in this folder says how Envoy, HAProxy and kubernetes-validate are installed. Every process
is started here, on a free port, and stopped by its id. Figures are a machine's, which all of them share; so
only broken promises end the script with an error: a request that is lost, a state that is asked
about at two dockets for no reason, a refusal that does not say when to come back. A missed goal never does.
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

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))

from fleet import affinity, files, hits, loss, refusals  # noqa: E402
from fleet.setting import Setting  # noqa: E402
from peers.machine import describe  # noqa: E402
from scheduling import figure  # noqa: E402
from scheduling.figure import Figure, must  # noqa: E402
from scheduling.wire import Broken  # noqa: E402

LINES = {
    "files": files,
    "affinity": affinity,
    "hits": hits,
    "loss": loss,
    "refusals": refusals,
}


def main() -> int:
    """Runs the lines that were asked for and prints the table."""
    options = _options()
    machine = describe() | {"docket": _version(options.docket)}
    names = list(LINES) if options.line == "all" else [options.line]
    rows, broken = [], 0
    with tempfile.TemporaryDirectory(prefix="docket-fleet-") as folder:
        setting = Setting(
            root=ROOT,
            docket=options.docket,
            envoy=options.envoy,
            tools=options.tools,
            folder=Path(folder),
            short=options.short,
        )
        for name in names:
            figures = _measure(name, setting)
            rows += [figure.row(name, one) for one in figures]
            broken += sum(one.is_broken for one in figures)
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print("\n".join([*(f"- {name}: {value}" for name, value in machine.items()), f"- load after: {loads}", ""]))
    print("\n".join([*figure.head(), *rows]))
    return 1 if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    built = ROOT / "target" / "release"
    parser.add_argument("line", choices=["all", *LINES])
    parser.add_argument("--docket", type=Path, default=built / "docket", help="default: %(default)s")
    parser.add_argument("--envoy", type=Path, help="the program; without it no line is behind Envoy")
    parser.add_argument("--tools", type=Path, help="folder with kubernetes-validate (a venv's bin)")
    parser.add_argument("--short", action="store_true", help="seconds a line")
    return parser.parse_args()


def _measure(name: str, setting: Setting) -> list[Figure]:
    """The rows of a line; what keeps it from being measured is a broken promise too."""
    began = time.monotonic()
    try:
        figures: list[Figure] = asyncio.run(LINES[name].run(setting))
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
