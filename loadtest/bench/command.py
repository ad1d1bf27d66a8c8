"""The command line of run-all: which sections run, with what, and where their tables go."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import subprocess
import sys
import time
from pathlib import Path

from peers.machine import describe
from scheduling.figure import must
from scheduling.wire import Broken

from .result import Result, Table
from .sections import SECTIONS, Section
from .setting import ROOT, Setting

INTERRUPTED = 130
"""What a shell says of a program that SIGINT ended."""

NAMES = [section.name for section in SECTIONS]


def main(explained: str) -> int:
    """Runs what was asked for; 1 where a promise was broken."""
    options = _parser(explained).parse_args()
    if options.list:
        print("\n".join(_listed()))
        return 0
    if unknown := [name for name in options.names if name not in NAMES]:
        sys.exit(f"no section is called {unknown[0]!r}; there are {', '.join(NAMES)}")
    setting = _setting(options)
    machine = describe()
    # That of the tree, which a binary need not be of.
    repository = machine.pop("docket commit", "not known")
    machine |= {
        "repository": repository,
        "docket": _version(setting.docket),
        "loadtest": _version(setting.loadtest),
        "run": "--full" if setting.full else "short: shorter than the figures of docs/BENCHMARKS.md",
    }
    print("\n".join(f"- {name}: {value}" for name, value in machine.items()), flush=True)
    broken = []
    for section in (one for one in SECTIONS if one.name in options.names or not options.names):
        try:
            result = _measured(section, setting, machine)
        except KeyboardInterrupt:
            print(f"{section.name} was interrupted; what it started is stopped", file=sys.stderr)
            return INTERRUPTED
        if result.broken:
            broken.append(section.name)
    if broken:
        print(f"broken promises in: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def _parser(explained: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=explained, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    built = ROOT / "target" / "release"
    parser.add_argument("names", nargs="*", metavar="NAME", help="sections (default: all)")
    parser.add_argument("--list", action="store_true", help="list the sections and stop")
    parser.add_argument("--full", action="store_true", help="settings of docs/BENCHMARKS.md, hours")
    out = ROOT / "target" / "run-all"
    parser.add_argument("--out", type=Path, default=out, metavar="DIR", help="default: %(default)s")
    parser.add_argument("--docket", type=Path, default=built / "docket", help="default: %(default)s")
    parser.add_argument("--loadtest", type=Path, default=built / "loadtest", help="default: %(default)s")
    parser.add_argument(
        "--model", default="smollm2:135m", help="the small one, or fake (default: %(default)s)"
    )
    parser.add_argument("--default-model", default="qwen2.5-coder:1.5b", help="default: %(default)s")
    parser.add_argument("--llama-server", type=Path, metavar="PATH", help="a llama-server to compare with")
    parser.add_argument(
        "--peers-python", default=sys.executable, help="a python with llama_cpp, for `engines`"
    )
    parser.add_argument("--threads", type=int, default=2, help="of each server (default: %(default)s)")
    return parser


def _setting(options: argparse.Namespace) -> Setting:
    for name in ("docket", "loadtest", "llama_server"):
        path = getattr(options, name)
        if path is not None and not os.access(path, os.X_OK):
            sys.exit(f"--{name.replace('_', '-')} {path} is no program")
    return Setting(
        docket=options.docket.resolve(),
        loadtest=options.loadtest.resolve(),
        model=options.model,
        default_model=options.default_model,
        llama_server=options.llama_server.resolve() if options.llama_server else None,
        peers_python=options.peers_python,
        threads=options.threads,
        full=options.full,
        out=options.out.resolve(),
    )


def _version(program: Path) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or f"{program} does not say"


def _listed() -> list[str]:
    rows = []
    for section in SECTIONS:
        minutes = [f"{count}" for count in section.minutes]
        rows.append((section.name, *minutes, section.title, section.part, section.commands(is_full=True)))
    columns = ("name", "minutes", "--full", "what", "part of docs/BENCHMARKS.md", "its command, --full")
    total = f"All: about {sum(short for short, _ in (one.minutes for one in SECTIONS))} minutes."
    return [*Table(columns, rows, is_text=True).lines(), "", total]


def _measured(section: Section, setting: Setting, machine: dict[str, str]) -> Result:
    """Runs a section, and prints and keeps its tables; what keeps it from running is a broken promise."""
    loads, began = [_load()], time.monotonic()
    print(f"{section.name} ...", file=sys.stderr, flush=True)
    try:
        result = asyncio.run(section.run(dataclasses.replace(setting, section=section.name)))
    except (Broken, OSError) as fault:
        # A server that is gone breaks connections, and a run that hangs is a TimeoutError.
        told = str(fault) or type(fault).__name__
        result = Result(figures=[must("could be measured", told, "yes", met=False)])
    seconds = time.monotonic() - began
    loads.append(_load())
    command = section.commands(setting.full)
    note = f"{command}; {seconds:.0f} s; load average before and after: {'; '.join(loads)}"
    text = f"\n## {section.title}\n\n{note}\n\n{result.markdown()}\n"
    print(text, flush=True)
    head = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    tables = setting.folder("tables") / section.name
    tables.with_suffix(".md").write_text(f"{head}\n{text}", encoding="utf-8")
    facts = {"section": section.name, "command": command, "machine": machine, "load": loads}
    tables.with_suffix(".json").write_text(result.json(facts | {"seconds": seconds}), encoding="utf-8")
    return result


def _load() -> str:
    return ", ".join(f"{load:.1f}" for load in os.getloadavg())
