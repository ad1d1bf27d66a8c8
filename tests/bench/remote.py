"""The remote engine against a real llama-server: same answers, its cache used, and its death survived.

    remote.py --llama-server FILE --model smollm2-f32.gguf
    remote.py ... --seconds 20          longer under load before and after the kill
    remote.py ... --near 0.1            on a quantised file, see below

llama.cpp rounds activations to 8 bits where weights are quantised, and that moves its own probabilities by more
than any fault of docket would. So the strict comparison is over weights as F32, which
`tests/golden/dequantised.py` makes of any file, and `--near` is for the others.

It needs `cargo build --release`, the model (`docket pull smollm2:135m`) and a llama-server; nothing but
Python's standard library. It starts docket twice (its own engine, and the remote one) and the llama-server
itself, on free ports, and ends each by its id. A broken promise ends the script with an error.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from peers.machine import describe
from scheduling import figure
from scheduling.figure import Figure, must
from scheduling.server import Server, serving
from scheduling.wire import HOST, Broken, Reply, decision, ends, request, text

ROOT = Path(__file__).resolve().parents[2]

SLOTS = 4
CONTEXT = 2048
LOAD_SECONDS_MAX = 120
CLIENTS = 8

STATES = (
    "I was charged twice for the same order and nobody answers the phone. I want my money back.",
    "The login page shows a blank screen since the update this morning, on every browser.",
    "Thanks, the parcel came a day early and everything works. Keep it up!",
    "Our invoice 4711 has the wrong address; please send a corrected one by Friday.",
)

QUESTIONS: dict[str, Any] = {
    "refund": {"type": "noul", "instructions": "Is a refund due?"},
    "angry": {"type": "noul", "instructions": "Is the writer angry?"},
    "team": {
        "type": "choice",
        "instructions": "Which team should handle this?",
        "criteria": {"billing": "payments and refunds", "technical": "technical problems", "other": "all else"},
    },
    "urgency": {
        "type": "score",
        "instructions": "How urgent is it?",
        "criteria": ["can wait", "this week", "today"],
    },
}


class Llama:
    """A llama-server on a port of its own that can be killed and started again."""

    def __init__(self, binary: Path, model: Path, folder: Path, more: list[str]) -> None:
        """Not started yet."""
        self.port = _free_port()
        self._words = [str(binary), "-m", str(model), "--host", HOST, "--port", str(self.port)]
        self._words += ["-np", str(SLOTS), "-c", str(SLOTS * CONTEXT), "--metrics", *more]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    async def start(self) -> None:
        """Starts it and waits until its model is loaded."""
        log = self._folder / f"llama-{time.monotonic_ns()}.log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(self._words, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        until = time.monotonic() + LOAD_SECONDS_MAX
        while time.monotonic() < until and self._process.poll() is None:
            if (await request(self.port, "/health", seconds_max=5)).status == 200:
                return
            await asyncio.sleep(0.1)
        raise Broken(f"llama-server has not loaded its model: {log.read_text(errors='replace')[-300:]}")

    def kill(self) -> None:
        """SIGKILL, by its id."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    async def prompt_tokens(self) -> float:
        """Tokens of prompts that it has computed, by its own metrics."""
        page = (await request(self.port, "/metrics")).body.decode()
        lines = [line for line in page.splitlines() if line.startswith("llamacpp:prompt_tokens_total ")]
        return float(lines[0].split()[1]) if lines else 0.0


@contextlib.asynccontextmanager
async def running(llama: Llama) -> AsyncIterator[Llama]:
    """It, started, for a while."""
    try:
        await llama.start()
        yield llama
    finally:
        llama.kill()


async def measure(options: argparse.Namespace, folder: Path) -> list[Figure]:
    """All rows."""
    model = _model_file(options.model)
    own_logs, remote_logs = folder / "own", folder / "remote"
    own_logs.mkdir()
    remote_logs.mkdir()
    own_flags = [str(model), "--engine", "cpu", "--precision", "f32", "--layout", options.layout]
    async with serving(options.own_docket or options.docket, own_logs, own_flags) as server:
        own = [await _answers(server, state) for state in STATES]
    more = ["-t", str(options.threads), "-tb", str(options.threads)]
    async with running(Llama(options.llama_server, model, folder, more)) as llama:
        flags = [str(model), "--engine", "llama-server", "--engine-url", llama.url, "--layout", options.layout]
        # What is refused for its wait would say nothing of the server that was killed.
        flags += ["--wait-normal", "10m", "--timeout", "120s"]
        async with serving(options.docket, remote_logs, flags) as server:
            remote = [await _answers(server, state) for state in STATES]
            rows = list(_compared(own, remote, options.near))
            rows += await _reuse(server, llama)
            rows += await _killed(server, llama, options.seconds)
    return rows


async def _answers(server: Server, state: str) -> dict[str, float]:
    """Every probability of every answer on a state, by question and option."""
    body = {"state": state, "questions": QUESTIONS, "samples": 1}
    reply = await request(server.port, "/v1/systemone", body)
    if reply.status != 200:
        raise Broken(f"{reply.end}: {reply.body[:200]!r}")
    found: dict[str, float] = {}
    for name, answer in reply.json()["answers"].items():
        if answer["type"] == "noul":
            found[name] = answer["noul"]
        else:
            found |= {f"{name}.{option}": share for option, share in answer["probabilities"].items()}
    return found


def _compared(
    own: list[dict[str, float]], remote: list[dict[str, float]], near: float
) -> Iterator[Figure]:
    differences = [
        abs(mine[name] - theirs[name]) for mine, theirs in zip(own, remote, strict=True) for name in mine
    ]
    worst = max(differences)
    yield must(
        f"{len(differences)} probabilities against our own engine in f32: greatest difference",
        f"{worst:.4f}",
        f"at most {near}",
        worst <= near,
    )
    mean = sum(differences) / len(differences)
    yield Figure("the same: mean difference", f"{mean:.5f}")


async def _reuse(server: Server, llama: Llama) -> list[Figure]:
    """A long state asked about many times: the server computes it once."""
    state = text(400, "reuse")
    before, computed = await server.metrics(), await llama.prompt_tokens()
    replies = [
        await request(server.port, "/v1/systemone", decision(state, f"Is number {number} late?"))
        for number in range(8)
    ]
    after, computed = await server.metrics(), await llama.prompt_tokens() - computed
    grown = {
        name: after.total(f"docket_remote_{name}_total") - before.total(f"docket_remote_{name}_total")
        for name in ("prompt_tokens", "cached_tokens")
    }
    share = grown["cached_tokens"] / max(1.0, grown["prompt_tokens"])
    hits = 'docket_remote_hits_total{end="confirmed"}'
    confirmed = after.get(hits, 0.0) - before.get(hits, 0.0)
    return [
        must("eight questions on one state end", ends(replies), "8 x 200", all(r.status == 200 for r in replies)),
        must("share of their prompts that the server had", f"{share:.2f}", "over 0.7", share > 0.7),
        must("its own count of computed tokens", f"{computed:.0f} of {grown['prompt_tokens']:.0f}", "under half",
             computed < grown["prompt_tokens"] / 2),
        must("hits confirmed", f"{confirmed:.0f}", "at least 7", confirmed >= 7),
    ]


async def _killed(server: Server, llama: Llama, seconds: float) -> list[Figure]:
    """The llama-server is killed under load and started again."""
    replies: list[Reply] = []
    stop = asyncio.Event()
    clients = [asyncio.create_task(_client(server, number, replies, stop)) for number in range(CLIENTS)]
    await asyncio.sleep(seconds)
    before = len(replies)
    llama.kill()
    killed = time.monotonic()
    unready = await _until(server, ready=False)
    await asyncio.sleep(seconds)
    alive = (await request(server.port, "/health")).status
    during = len(replies)
    await llama.start()
    returned = time.monotonic()
    ready = await _until(server, ready=True)
    await asyncio.sleep(seconds)
    stop.set()
    await asyncio.gather(*clients)
    left = await server.not_at_rest()
    kinds = {reply.end for reply in replies}
    allowed = {"200", "503 engine_unavailable", "503", "429 wait", "429 queue_full", "504 expired"}
    late = [reply for reply in replies[during:] if reply.status == 200]
    return [
        must("requests under load end", ends(replies), "every one, in a way it may", kinds <= allowed),
        must("answered before the kill", f"{before}", "some", before > 0),
        must("unready after the kill", f"{unready - killed:.1f} s", "within 15 s", unready - killed < 15),
        must("alive while the server is gone", str(alive), "200", alive == 200),
        must("ready after its return", f"{ready - returned:.1f} s", "within 15 s", ready - returned < 15),
        must("answered after its return", f"{len(late)}", "some", len(late) > 0),
        figure.at_rest(left),
    ]


async def _client(server: Server, number: int, replies: list[Reply], stop: asyncio.Event) -> None:
    count = 0
    while not stop.is_set():
        count += 1
        body = decision(text(60, f"client {number}, state {count // 4}"), f"Is number {count} late?")
        reply = await request(server.port, "/v1/systemone", body)
        replies.append(reply)
        if reply.status != 200:
            await asyncio.sleep(0.1)


async def _until(server: Server, *, ready: bool) -> float:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        status = (await request(server.port, "/health?ready=1")).status
        if (status == 200) == ready:
            return time.monotonic()
        await asyncio.sleep(0.05)
    raise Broken(f"it never becomes {'ready' if ready else 'unready'}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port


def _model_file(model: str) -> Path:
    """The GGUF file of a model of `docket models`, or of a path."""
    if Path(model).is_file():
        return Path(model)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(os.environ.get("DOCKET_HOME") or Path(cache) / "docket")
    found = sorted((home / "models" / model.replace(":", "-")).glob("*.gguf"))
    if len(found) != 1:
        sys.exit(f"{model} is no file, and its folder has {len(found)} GGUF files")
    return found[0]


def main() -> int:
    """Runs it and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    docket = ROOT / "target" / "release" / "docket"
    parser.add_argument("--docket", type=Path, default=docket, help="default: %(default)s")
    own = "another docket whose own engine is compared with (default: the same)"
    parser.add_argument("--own-docket", type=Path, help=own)
    parser.add_argument("--llama-server", type=Path, required=True)
    parser.add_argument("--model", default="smollm2:135m", help="a name or a GGUF file (default: %(default)s)")
    parser.add_argument("--layout", default="bare", help="of both (default: %(default)s)")
    parser.add_argument("--near", type=float, default=0.02, help="most difference (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of the llama-server (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=6, help="of each part under load (default: %(default)s)")
    options = parser.parse_args()
    machine = describe()
    with tempfile.TemporaryDirectory(prefix="docket-remote-") as folder:
        try:
            rows = asyncio.run(measure(options, Path(folder)))
        except Broken as fault:
            rows = [must("could be measured", str(fault), "yes", met=False)]
    print("\n".join(f"- {name}: {value}" for name, value in machine.items()), "", sep="\n")
    print("\n".join([*figure.head(), *(figure.row("remote", one) for one in rows)]))
    return 1 if any(one.is_broken for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
