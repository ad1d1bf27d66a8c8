"""What every section needs: the binaries, the models, how long it may take, and where reports go."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
import re
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from scheduling.bench import PATIENT, Bench
from scheduling.figure import Figure, must
from scheduling.server import Server, serving
from scheduling.wire import HOST, Broken

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "loadtest" / "workloads"

FAKE = "fake"
"""Stands for the fake engine in place of a model: for a look at the sections, not for their figures."""

LOST = ("failed", "timed_out", "connection_error")
"""Ends that no request should have, however slow the machine is."""

TIMEOUT = "100s"
"""A server's own, on slow machines too: below the 120 s that the generator's clients wait."""

LOAD_SECONDS_MAX = 4 * 3_600
"""How long one run of the generator may take. All of its requests end: it is stopped only where it hangs."""

READY_SECONDS_MAX = 60
"""How long a process other than docket may take until it listens."""

Report = dict[str, Any]
"""The JSON of one run of the generator."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Setting:
    """The setting of a section."""

    docket: Path
    loadtest: Path
    model: str
    default_model: str
    llama_server: Path | None
    peers_python: str
    threads: int
    full: bool
    out: Path
    section: str = ""

    def pick(self, short: T, full: T) -> T:
        """By how long it may take."""
        return full if self.full else short

    @property
    def is_fake(self) -> bool:
        """Whether no model is asked for."""
        return self.model == FAKE

    @property
    def seeds(self) -> range:
        """Of runs that are made several times, for the spread."""
        return range(1, self.pick(3, 4))

    def fake(
        self, *arguments: str, headers: Mapping[str, str] | None = None
    ) -> contextlib.AbstractAsyncContextManager[Server]:
        """A server whose answers are hashes, in a time that its flags say; a token a byte. Patient."""
        words = ["--engine", "fake", *PATIENT, *arguments]
        return serving(self.docket, self.folder("logs"), words, headers)

    def real(
        self,
        *arguments: str,
        model: str = "",
        is_patient: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> contextlib.AbstractAsyncContextManager[Server]:
        """A server of a model, of the small one if none is named.

        Patient, it refuses nothing for a long wait, so that a slow machine shows in latencies.
        """
        served = model or self.model
        what = ["--engine", FAKE] if served == FAKE else [served, "--threads", str(self.threads)]
        words = [*what, "--timeout", TIMEOUT]
        words += [*(PATIENT if is_patient else ()), *arguments]
        return serving(self.docket, self.folder("logs"), words, headers)

    def lines(self, folder: Path) -> Bench:
        """The setting of tests/bench/scheduling, whose lines are part of some sections."""
        return Bench(self.docket, self.loadtest, self.model, folder, not self.full, 0)

    def folder(self, name: str) -> Path:
        """A folder of reports."""
        path = self.out / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def run_file(self, label: str, kind: str) -> Path:
        """Where a report of a run is; models' names have colons and slashes."""
        return self.folder("runs") / f"{self.section}-{re.sub(r'[^A-Za-z0-9.]+', '-', label)}.{kind}"

    async def load(self, url: str, label: str, kind: str, *arguments: str) -> Report:
        """One run of the generator; its reports stay."""
        report = self.run_file(label, "json")
        report.unlink(missing_ok=True)
        words = [kind, "--url", url, "--json", str(report), *arguments]
        if knows(self.loadtest, kind, "--html"):
            words += ["--html", str(self.run_file(label, "html"))]
        process = await asyncio.create_subprocess_exec(
            self.loadtest, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            async with asyncio.timeout(LOAD_SECONDS_MAX):
                _, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if not report.exists():
            why = errors.decode().partition("Stack backtrace")[0].split()
            raise Broken(f"loadtest {' '.join([kind, *arguments])}: {' '.join(why)[:300]}")
        found: Report = json.loads(report.read_text(encoding="utf-8"))
        return found

    def variant(self, name: str, workload: str, changes: Mapping[str, str]) -> str:
        """A copy of a shipped workload in which each of these texts, which it has once, is another."""
        text = (WORKLOADS / f"{workload}.toml").read_text(encoding="utf-8")
        for old, new in changes.items():
            if text.count(old) != 1:
                raise Broken(f"{workload}.toml has {old!r} {text.count(old)} times, not once")
            text = text.replace(old, new)
        path = self.folder("workloads") / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def missing(self, model: str) -> str:
        """What to say where a model is not installed; empty where it is."""
        told = subprocess.run([self.docket, "models"], capture_output=True, text=True, check=False).stdout
        row = re.search(rf"^{re.escape(model)}\s.*\byes\b", told, re.MULTILINE)
        return (
            ""
            if row or model == FAKE or Path(model).exists()
            else f"{model} is not installed: docket pull {model}"
        )


@functools.cache
def knows(program: Path, command: str, flag: str) -> bool:
    """Whether a command of the generator has a flag."""
    told = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=False)
    return re.search(rf"{flag}\b", told.stdout) is not None


def times(seconds: float, warm_up: float = 1) -> tuple[str, ...]:
    """Flags of a run that measures for so long, after what is not measured."""
    return ("--duration", f"{seconds + warm_up:g}s", "--warm-up", f"{warm_up:g}s")


def none_lost(reports: list[Report], name: str = "", ends: tuple[str, ...] = LOST) -> Figure:
    """That every request of these runs had an end that it may have."""
    sent = sum(report["all"]["sent"] for report in reports)
    counts = {end: sum(report["all"]["outcomes"][end] for report in reports) for end in ends}
    found = [f"{count} {end}" for end, count in counts.items() if count]
    fault = next((report["first_fault"] for report in reports if report["first_fault"] and found), "")
    words = ", ".join([*found, *([str(fault)[:120]] if fault else [])])
    what = f"{name}: " if name else ""
    return must(f"{what}of {sent:,} requests lost", words or "none", "none", not found)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def process(setting: Setting, name: str, port: int, words: list[str]) -> AsyncIterator[str]:
    """A process that listens on a port, for a while; its address. It is stopped by its id."""
    with (setting.folder("logs") / f"{setting.section}-{name}.log").open("wb") as log:
        running = await asyncio.create_subprocess_exec(*words, stdout=log, stderr=log)
    try:
        await _listening(running, port, words[0])
        yield f"http://{HOST}:{port}"
    finally:
        if running.returncode is None:
            running.terminate()
            try:
                await asyncio.wait_for(running.wait(), 10)
            except TimeoutError:
                running.kill()
                await running.wait()


async def _listening(running: asyncio.subprocess.Process, port: int, name: str) -> None:
    for _ in range(READY_SECONDS_MAX * 10):
        if running.returncode is not None:
            raise Broken(f"{name} ends with {running.returncode} before it listens")
        try:
            _, writer = await asyncio.open_connection(HOST, port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise Broken(f"{name} does not listen after {READY_SECONDS_MAX} s")
