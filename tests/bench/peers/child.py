"""The line protocol between the orchestrator and a peer, and both of its ends.

One JSON object a line: `{"what": "prefill", "tokens": 512}` or `{"what": "warm", "state": 500,
"questions": 8, "question_tokens": 60}` asks for one run and `{"seconds": .., "cpu_seconds": ..}`
answers; `{"what": "quit"}` ends the peer. The first run of a piece of work may take longer, to make it
ready. A llama.cpp peer also tells its `settings`, and takes them in a request.
"""

from __future__ import annotations

import dataclasses
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .work import PeerError, Work, request_of, work_of

ANSWER_SECONDS_MAX = 1_800
"""Longest wait for an answer: a build of docket or the choice of llama.cpp's settings may precede it."""

OTHER_LINES_MAX = 1_000
"""Lines that are no JSON which a peer may print before it answers."""

QUIT_SECONDS_MAX = 30


def serve(path: Path, threads: int) -> None:
    """The far end: llama.cpp, until the input ends or says quit."""
    from .tuning import Tuner

    tuner = Tuner(path, threads)
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("what") == "quit":
            return
        runner = tuner.runner(work_of(request), request.get("settings"))
        answer = dataclasses.asdict(runner.run()) | {"settings": dataclasses.asdict(runner.settings)}
        print(json.dumps(answer), flush=True)


@dataclasses.dataclass(frozen=True)
class Answer:
    """One run, as the peer timed it; `settings` where it has any."""

    seconds: float
    cpu_seconds: float
    settings: dict[str, Any] | None


class Child:
    """The near end: a peer process, its errors passed through."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        """Starts it."""
        self.name = name
        try:
            self.process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise PeerError(f"{name} does not start: {error}") from error
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self.lines.put(line)
        self.lines.put(None)

    def ask(self, work: Work, settings: dict[str, Any] | None = None) -> Answer:
        """One run."""
        request = request_of(work) | ({"settings": settings} if settings else {})
        self._send(request)
        answer = self._receive()
        try:
            seconds, cpu_seconds = float(answer["seconds"]), float(answer["cpu_seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise PeerError(f"{self.name} answers {answer} to {request}") from error
        if not (seconds > 0 and cpu_seconds > 0):
            raise PeerError(f"{self.name} answers {answer}: a run takes time")
        return Answer(seconds, cpu_seconds, answer.get("settings"))

    def _send(self, request: dict[str, Any]) -> None:
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise PeerError(f"{self.name} is gone: {error}") from error

    def _receive(self) -> dict[str, Any]:
        for _ in range(OTHER_LINES_MAX):
            try:
                line = self.lines.get(timeout=ANSWER_SECONDS_MAX)
            except queue.Empty:
                raise PeerError(f"{self.name}: no answer in {ANSWER_SECONDS_MAX} s") from None
            if line is None:
                raise PeerError(f"{self.name} has ended, status {self.process.wait()}")
            if line.startswith("{"):
                return json.loads(line)
        raise PeerError(f"{self.name} prints {OTHER_LINES_MAX} lines and no answer")

    def close(self) -> None:
        """Asks it to quit; ends it if it does not."""
        try:
            self._send({"what": "quit"})
            self.process.wait(QUIT_SECONDS_MAX)
        except (PeerError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
