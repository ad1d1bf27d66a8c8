"""SIGTERM in the middle of a load: what was let in is answered, what comes later is told, nothing is cut."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import time
from collections import Counter

from scheduling.figure import Figure, must
from scheduling.server import Server
from scheduling.wire import Reply, decide, ends, text

from .result import Result, Table, number
from .setting import Setting

WORDS = 150
SPEED = ("--fake-step-ms", "20", "--fake-token-us", "20")
DRAINING = "503 draining"
COLUMNS = (
    *("engine", "clients", "asked before the signal, open then", "how these ended"),
    *("asked after it", "ended s after", "exit"),
)


@dataclasses.dataclass
class Book:
    """Requests with the time at which each was asked."""

    replies: list[tuple[float, Reply]] = dataclasses.field(default_factory=list)
    numbers: itertools.count[int] = dataclasses.field(default_factory=itertools.count)


async def run(setting: Setting) -> Result:
    """The fake engine, then the model."""
    seconds = setting.pick(3.0, 10.0)
    result = Result([Table(COLUMNS, [])])
    engines = {"fake": (setting.fake(*SPEED), 32), setting.model: (setting.real(), 8)}
    for name, (serving, clients) in engines.items():
        async with serving as server:
            await _drained(server, name, clients, seconds, result)
    return result


async def _drained(server: Server, name: str, clients: int, seconds: float, result: Result) -> None:
    book = Book()
    tasks = [asyncio.create_task(_client(server, book)) for _ in range(clients)]
    await asyncio.sleep(seconds)
    signalled = time.monotonic()
    server.terminate()
    code = await server.ended()
    took = time.monotonic() - signalled
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    before = [reply for began, reply in book.replies if began < signalled]
    open_then = [reply for began, reply in book.replies if began < signalled < began + reply.seconds]
    after = [reply for began, reply in book.replies if began >= signalled]
    asked = f"{len(before):,}, {len(open_then)}"
    row = (name, str(clients), asked, ends(open_then), ends(after) or "none")
    result.tables[0].rows.append((*row, number(took), str(code)))
    result.figures += _promises(name, before, after, code)


async def _client(server: Server, book: Book) -> None:
    """One request after another, until one is not answered."""
    while True:
        name, began = next(book.numbers), time.monotonic()
        reply = await decide(server.port, text(WORDS, f"drain {name}"), f"Is it {name}?")
        book.replies.append((began, reply))
        if reply.status != 200:
            return


def _promises(name: str, before: list[Reply], after: list[Reply], code: int | None) -> list[Figure]:
    cut = Counter(reply.end for reply in before if reply.status != 200 and reply.end != DRAINING)
    # Who comes when the door is shut is refused by the system, or cut by it before he is let in.
    strange = Counter(reply.end for reply in after if reply.status not in (0, 200) and reply.end != DRAINING)
    told = ", ".join(f"{count} x {end}" for end, count in (cut + strange).items())
    return [
        must(f"{name}: ends that are not an answer or a refusal to start", told or "none", "none", not told),
        must(f"{name}: exit code", str(code), "0", code == 0),
    ]
