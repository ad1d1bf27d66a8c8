"""What every line needs: three dockets, and a router in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from scheduling.server import Server, serving
from scheduling.wire import Broken, request

DOCKETS = 3
START_SECONDS_MAX = 60

KV_BYTES = "1MiB"
"""About 20 of the states below, at the fake engine's 64 bytes a token and one token a byte."""

STATE_WORDS = 120


@dataclasses.dataclass(frozen=True)
class Router:
    """What the clients of a line ask."""

    name: str
    port: int
    sends_key: bool
    """Whether clients send back the key of a state: what makes none by itself goes by theirs."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """The setting of a run."""

    root: Path
    docket: Path
    envoy: Path | None
    tools: Path | None
    folder: Path
    short: bool

    @contextlib.asynccontextmanager
    async def dockets(self, *arguments: str) -> AsyncIterator[list[Server]]:
        """Dockets that agree on the keys of states."""
        secret = self.folder / "state-key.secret"
        secret.write_text("the same for all dockets of a test\n", encoding="utf-8")
        flags = ["--engine", "fake", "--kv-bytes", KV_BYTES, "--state-key-secret", str(secret), *arguments]
        async with contextlib.AsyncExitStack() as stack:
            servers = [
                await stack.enter_async_context(_tolerant(self.docket, self.folder, flags))
                for _ in range(DOCKETS)
            ]
            yield servers

    @contextlib.asynccontextmanager
    async def gateway(self, servers: Sequence[Server], *arguments: str) -> AsyncIterator[Router]:
        """`docket gateway`, which makes the keys itself."""
        backends = [word for server in servers for word in ("--backend", server.url)]
        words = ["gateway", "--listen", "127.0.0.1:0", "--log", "text", *backends, *arguments]
        async with _process(self.docket, words, self.folder / "gateway.log") as log:
            port = await _found(log, r"listening on http://[^ ]*:(\d+)")
            yield Router("docket gateway", int(port), sends_key=False)

    @contextlib.asynccontextmanager
    async def behind_envoy(self, servers: Sequence[Server], bounded: bool = True) -> AsyncIterator[Router]:
        """Envoy with the file of docs/deploy, in which only addresses are others."""
        if self.envoy is None:
            raise Broken("no Envoy was named")
        clients, admin = _free_port(), _free_port()
        text = envoy_file(self.root, [server.port for server in servers], clients, admin)
        if not bounded:
            text = re.sub(r" *consistent_hashing_lb_config: .*\n", "", text)
        path = self.folder / f"envoy-{clients}.yaml"
        path.write_text(text, encoding="utf-8")
        words = ["-c", str(path), "--log-level", "warning", "--use-dynamic-base-id", "--concurrency", "1"]
        async with _process(self.envoy, words, self.folder / f"envoy-{clients}.log") as log:
            await _ready(admin, log)
            yield Router("Envoy", clients, sends_key=True)

    @contextlib.asynccontextmanager
    async def routers(self, servers: Sequence[Server]) -> AsyncIterator[list[Router]]:
        """All that there are on this machine."""
        async with contextlib.AsyncExitStack() as stack:
            routers = [await stack.enter_async_context(self.gateway(servers))]
            if self.envoy is not None:
                routers.append(await stack.enter_async_context(self.behind_envoy(servers)))
            yield routers


@contextlib.asynccontextmanager
async def _tolerant(docket: Path, folder: Path, flags: Sequence[str]) -> AsyncIterator[Server]:
    """A docket that a line may kill: how it ends is not looked at then."""
    async with serving(docket, folder, flags) as server:
        yield server


def envoy_file(root: Path, ports: Sequence[int], clients: int, admin: int) -> str:
    """The file of docs/deploy with addresses of this machine."""
    text = (root / "docs/deploy/envoy.yaml").read_text(encoding="utf-8")
    for index, port in enumerate(ports):
        text = text.replace(
            f"address: docket-{index}.docket, port_value: 8000", f"address: 127.0.0.1, port_value: {port}"
        )
    text = text.replace("address: 0.0.0.0, port_value: 8080", f"address: 127.0.0.1, port_value: {clients}")
    return text.replace("port_value: 9901", f"port_value: {admin}")


@contextlib.asynccontextmanager
async def _process(program: Path, words: Sequence[str], log: Path) -> AsyncIterator[Path]:
    with log.open("wb") as out:
        process = subprocess.Popen([str(program), *words], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        yield log
    finally:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, 45)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _found(log: Path, pattern: str) -> str:
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text(encoding="utf-8"))
        if found:
            return found[1]
        await asyncio.sleep(0.05)
    raise Broken(f"{log.name}: {log.read_text(encoding='utf-8').strip()[-300:] or 'no words'}")


async def _ready(admin: int, log: Path) -> None:
    """Until Envoy is live and has found its dockets healthy."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        reply = await request(admin, "/clusters?format=json", seconds_max=5)
        if reply.status == 200 and reply.body.count(b'"eds_health_status"') == DOCKETS:
            if b"failed_active_health_check" not in reply.body:
                return
        await asyncio.sleep(0.1)
    raise Broken(f"Envoy: {log.read_text(encoding='utf-8').strip()[-300:] or 'not ready'}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
