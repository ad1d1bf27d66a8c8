"""A docket process on a free port, with a folder of its own: started, watched, and stopped by its id."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .wire import Broken, request

START_SECONDS_MAX = 180
"""Weights may have to be packed anew."""

STOP_SECONDS_MAX = 45
"""The server's own drain ends after 30 s."""

REST_SECONDS_MAX = 15
"""How long gauges may take to come back to 0 when nobody asks any more."""

AT_REST = (
    "docket_queue_",
    "docket_entering_reads",
    "docket_oldest_wait_seconds",
    "docket_tenant_reads",
    "docket_wants_waiting",
    "docket_prewarms_waiting",
    "docket_residency_leases",
    "docket_reads_in_flight",
    "docket_decisions_open",
    "docket_registrations_pending",
    "docket_http_body_bytes",
    'docket_residency_bytes{kind="reserved"}',
    'docket_residency_bytes{kind="overflow"}',
    "vllm:num_requests_",
)
"""Beginnings of the gauges that are 0 on an idle server."""

CONNECTIONS = "docket_http_connections"
"""1 on an idle server: the one that asks."""


class Metrics(dict[str, float]):
    """Series by name and labels."""

    def total(self, name: str) -> float:
        """Of all series of a name, whatever its labels: the sum."""
        return sum(value for series, value in self.items() if series.partition("{")[0] == name)


@dataclasses.dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    headers: Mapping[str, str]

    @property
    def url(self) -> str:
        """For the load generator."""
        return f"http://127.0.0.1:{self.port}"

    async def metrics(self) -> Metrics:
        """Every series of /metrics by its name and labels."""
        lines = (line.rpartition(" ") for line in await self._page() if line[:1] not in ("", "#"))
        return Metrics({name: float(value) for name, _, value in lines})

    async def _page(self) -> list[str]:
        reply = await request(self.port, "/metrics", headers=self.headers)
        if reply.status != 200:
            raise Broken(f"/metrics: {reply.end}")
        return reply.body.decode().splitlines()

    async def health(self) -> dict[str, Any]:
        """The details of /health."""
        reply = await request(self.port, "/health", headers=self.headers)
        details: dict[str, Any] = reply.json()["details"]
        return details

    async def not_at_rest(self) -> str:
        """The gauges that did not come back to 0 in time, with their values; empty is well."""
        until = time.monotonic() + REST_SECONDS_MAX
        while True:
            left = _busy(await self._page())
            if not left or time.monotonic() > until:
                return ", ".join(left)
            await asyncio.sleep(0.1)

    def private_kib(self) -> int:
        """RssAnon + VmSwap: memory that is this process's own."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return sum(int(kib) for kib in re.findall(r"^(?:RssAnon|VmSwap):\s+(\d+) kB", status, re.MULTILINE))

    def terminate(self) -> None:
        """SIGTERM."""
        self.process.terminate()

    async def ended(self, seconds_max: float = STOP_SECONDS_MAX) -> int | None:
        """The exit code; none where it is still there after that time."""
        try:
            return await asyncio.to_thread(self.process.wait, seconds_max)
        except subprocess.TimeoutExpired:
            return None


def _busy(page: Sequence[str]) -> list[str]:
    """Series that an idle server does not show."""
    words = [line.split() for line in page if line.startswith("# TYPE")]
    gauges = {name for _, _, name, kind in words if kind == "gauge"}
    series = [line for line in page if line.partition(" ")[0].partition("{")[0] in gauges]
    values = ((line, float(line.rpartition(" ")[2])) for line in series)
    limits = ((line, value, 1 if line.startswith(CONNECTIONS) else 0) for line, value in values)
    return [line for line, value, most in limits if value > most and line.startswith((*AT_REST, CONNECTIONS))]


@contextlib.asynccontextmanager
async def serving(
    docket: Path, folder: Path, arguments: Sequence[str], headers: Mapping[str, str] | None = None
) -> AsyncIterator[Server]:
    """A server for a while. Ending it by SIGTERM must give exit code 0, unless it has ended already."""
    server = await started(docket, folder, arguments, headers)
    try:
        yield server
        if server.process.poll() is None:
            server.terminate()
            code = await server.ended()
            if code != 0:
                raise Broken(f"exit code {code} after SIGTERM")
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


async def started(
    docket: Path, folder: Path, arguments: Sequence[str], headers: Mapping[str, str] | None = None
) -> Server:
    """Starts one and waits until it listens."""
    log = folder / f"{len(list(folder.iterdir()))}.log"
    command = [str(docket), "serve", "--port", "0", "--offline", "--log", "text", *arguments]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until and process.poll() is None:
        found = re.search(r"listening on http://[^ ]*:(\d+)", log.read_text(encoding="utf-8"))
        if found:
            return Server(process, int(found[1]), log, headers or {})
        await asyncio.sleep(0.02)
    if process.poll() is None:
        process.kill()
        process.wait()
    last = log.read_text(encoding="utf-8").strip().splitlines()[-1:] or ["no words"]
    raise Broken(f"the server did not start ({' '.join(arguments)}): {last[0]}")


@dataclasses.dataclass(frozen=True)
class Generator:
    """The load generator, a process of its own; it shares the cores with the server."""

    loadtest: Path
    folder: Path

    async def run(self, server: Server, kind: str, *arguments: str) -> dict[str, Any]:
        """One run's report, of one in which nothing was answered too."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        words = [kind, "--url", server.url, "--json", str(report), *arguments]
        process = await asyncio.create_subprocess_exec(
            str(self.loadtest), *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        _, errors = await process.communicate()
        if not report.exists():
            why = errors.decode().partition("Stack backtrace")[0].split()
            raise Broken(f"loadtest {' '.join([kind, *arguments])}: {' '.join(why)[:300]}")
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return found
