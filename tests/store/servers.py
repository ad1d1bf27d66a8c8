"""What the checks of the shared store start and stop: a Postgres, servers, and a proxy that can be cut.

Each is a process or thread of ours and is stopped by its own handle.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

START_S = 60
STOP_S = 20


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(is_so, within_s: float) -> float | None:
    """After how many seconds it is so; None where it is not in time."""
    began = time.monotonic()
    while time.monotonic() - began < within_s:
        if is_so():
            return time.monotonic() - began
        time.sleep(0.02)
    return None


class Postgres:
    """A cluster that was made before."""

    def __init__(self, work: Path, logs: Path) -> None:
        self.work, self.logs = work, logs
        self.bin = Path(os.environ["PG_BIN"])
        self.password = (work / "password").read_text().strip()
        self.port = free_port()
        self.process: subprocess.Popen | None = None
        self.more: list[str] = []

    def start(self) -> None:
        """Starts it and waits until it answers."""
        wrapper = os.environ.get("PG_AS", "").split()
        command = [*wrapper, self.bin / "postgres", "-D", self.work / "data", "-p", str(self.port)]
        command += ["-k", self.work, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", *self.more]
        with (self.logs / "postgres.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        ready = [self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        if until(lambda: subprocess.run(ready, check=False).returncode == 0, START_S) is None:
            raise RuntimeError("postgres does not answer")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops it: SIGINT ends its sessions, SIGQUIT is as a crash."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(STOP_S)

    def sql(self, text: str) -> str:
        """What a statement gives, as text."""
        command = ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "docket", "-d", "postgres"]
        environment = {**os.environ, "PGPASSWORD": self.password}
        done = subprocess.run(
            [*command, "-tAc", text], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def url(self, password: str | None = None, port: int | None = None, more: str = "") -> str:
        """Its address, with a password where one is given."""
        user = f"docket:{password}" if password else "docket"
        return f"postgres://{user}@127.0.0.1:{port or self.port}/postgres{more}"


class Reply:
    """A response, read whole."""

    def __init__(self, status: int, headers, body: bytes) -> None:
        self.status, self.headers = status, headers
        self.text = body.decode()

    @property
    def json(self):
        return json.loads(self.text)


class Server:
    """A docket of the fake engine."""

    def __init__(self, binary: Path, log: Path, arguments: list[str], environment=None) -> None:
        self.log = log
        command = [binary, "serve", "--engine", "fake", "--dialect", "decisio", "--port", "0", *arguments]
        clean = {name: text for name, text in os.environ.items() if not name.startswith(("PG", "DOCKET_"))}
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env={**clean, **(environment or {})}
            )
        self.base = None
        until(self._is_settled, START_S)

    def _is_settled(self) -> bool:
        found = re.search(r"listening on (http://\S+)", self.told())
        self.base = found and found.group(1)
        return bool(found) or self.process.poll() is not None

    def told(self) -> str:
        """Its log."""
        return self.log.read_text(errors="replace")

    def ask(self, path: str, body=None, key: str | None = None, method: str | None = None) -> Reply:
        """A request: a POST where it has a body."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return Reply(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as error:
            return Reply(error.code, error.headers, error.read())

    def metric(self, name: str, key: str | None = None) -> float:
        """A sample of a metric, by its name and labels."""
        for line in self.ask("/metrics", key=key).text.splitlines():
            if line.startswith(name + " "):
                return float(line.split(" ")[1])
        raise KeyError(name)

    def stop(self) -> int:
        """Stops it; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_S)


class Proxy:
    """TCP to a port, which can be cut, or made to hang."""

    def __init__(self, target: int) -> None:
        self.target, self.is_cut = target, False
        self.flows = threading.Event()
        self.flows.set()
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, is_cut: bool) -> None:
        """Ends all connections and takes no new ones, or takes them again."""
        self.is_cut = is_cut
        if is_cut:
            pairs, self.pairs = self.pairs, []
            for one in (end for pair in pairs for end in pair):
                _close(one)

    def hang(self, hangs: bool) -> None:
        """Moves no byte while it hangs."""
        self.flows.clear() if hangs else self.flows.set()

    def _accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            if self.is_cut:
                _close(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                _close(client)
                continue
            self.pairs.append((client, server))
            for way in ((client, server), (server, client)):
                threading.Thread(target=self._move, args=way, daemon=True).start()

    def _move(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self.flows.wait()
                sink.sendall(data)
        except OSError:
            pass
        _close(source)
        _close(sink)


def _close(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    one.close()
