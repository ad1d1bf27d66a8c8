"""A folder of tasks after a server was killed in a registration, and with damaged files in it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scheduling.figure import Figure, must
from scheduling.server import Server
from scheduling.wire import Broken, request

from .bench import Bench, ask

if TYPE_CHECKING:
    from .tasks import Known

KILLED_AT = (0.1, 0.5, 0.9, 0.98, 1.0, 1.02)
SHORT_RUN_KILLED_AT = (0.5, 0.98, 1.02)
"""When a registration is killed, in its length."""

DAMAGE = {
    "empty": b"",
    "no JSON": b"\x00\xff\x13garbage",
    "a list": b"[1, 2, 3]",
    "an object of nothing": b"{}",
    "deep": b"[" * 100_000,
}


async def run(bench: Bench, folder: Path, known: Sequence[Known]) -> list[Figure]:
    """Kills first, then damage, which the folder does not survive whole."""
    return [*await kills(bench, folder, known), *await damages(bench, folder, known)]


async def kills(bench: Bench, folder: Path, known: Sequence[Known]) -> list[Figure]:
    """SIGKILL in the middle of the registration of a new task, at several moments."""
    third = dataclasses.replace(
        known[0].question, id="killed", options=(*known[0].question.options, "nobody")
    )
    kept = ("--tasks-dir", str(folder))
    length = await _length(bench, third.task())
    outcomes, wholes = [], 0
    for share in SHORT_RUN_KILLED_AT if bench.short else KILLED_AT:
        async with bench.killed(*kept) as server:
            await _forget(server, third.id)
            task = asyncio.create_task(request(server.port, "/decisio/v1/tasks", third.task()))
            await asyncio.sleep(length * share)
        reply = await task
        async with bench.serving(*kept) as server:
            wholes += await _are_applied(server, known)
            is_there = (await ask(server, third.asked("Anything."))).headers.get(
                "x-decisio-tasks"
            ) == third.id
        outcomes.append(_Outcome(share, reply.status == 200, is_there))
    count, lost = len(outcomes), [one for one in outcomes if one.was_told and not one.is_there]
    told = ", ".join(str(one) for one in outcomes)
    return [
        must(
            f"kill -9 in a registration of {length:.1f} s, then started again: earlier tasks as they were",
            f"{wholes} of {count} times",
            "always",
            wholes == count,
        ),
        must(f"the new task: {told}", f"{len(lost)} lost that were told registered", "none", not lost),
    ]


@dataclasses.dataclass(frozen=True)
class _Outcome:
    share: float
    was_told: bool
    is_there: bool

    def __str__(self) -> str:
        told = "told" if self.was_told else "not told"
        return f"at {self.share:.0%} {told} and {'there' if self.is_there else 'not there'}"


async def _length(bench: Bench, task: object) -> float:
    """Seconds of a registration on a fresh server."""
    async with bench.serving() as server:
        began = time.monotonic()
        reply = await request(server.port, "/decisio/v1/tasks", task)
        if reply.status != 200:
            raise Broken(f"a registration ends with {reply.end}: {reply.body[:200]!r}")
        return time.monotonic() - began


async def _forget(server: Server, name: str) -> None:
    await request(server.port, f"/decisio/v1/tasks/{name}", method="DELETE")


async def _are_applied(server: Server, known: Sequence[Known]) -> bool:
    """Whether each task is named and answers as it did."""
    from .tasks import same

    with contextlib.suppress(Broken):
        return (await same(server, list(known)))[2]
    return False


async def damages(bench: Bench, folder: Path, known: Sequence[Known]) -> list[Figure]:
    """Files beside the good ones first; then one of the good ones is cut."""
    kept = ("--tasks-dir", str(folder))
    async with bench.serving(*kept) as server:
        await _forget(server, "killed")
    good = _files(folder)
    if len(good) < len(known):
        raise Broken(f"{len(good)} files for {len(known)} tasks")
    for number, content in enumerate((*DAMAGE.values(), good[0].read_bytes()[:-20])):
        (good[0].parent / f"damaged-{number}{good[0].suffix}").write_bytes(content)
    rows = []
    async with bench.serving(*kept) as server:
        is_well = await _are_applied(server, known)
        rows.append(
            must(
                f"{len(DAMAGE) + 1} damaged files beside them: all tasks applied",
                _yes(is_well),
                "yes",
                is_well,
            )
        )
        rows.append(Figure("what the log says of one", _said(server.log, "damaged-0")))
    cut = next(path for path in good if known[1].question.id.encode() in path.read_bytes())
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    async with bench.serving(*kept) as server:
        first = await _are_applied(server, known[:1])
        reply = await ask(server, known[1].question.asked("Anything."))
        is_gone = "x-decisio-tasks" not in reply.headers
        what = (
            f"the file of {known[1].question.id} cut: the server starts, the other task applied, this one not"
        )
        rows.append(must(what, f"{_yes(first)}, {_yes(is_gone)}", "yes, yes", first and is_gone))
    return rows


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 100)


def _said(log: Path, name: str) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if name in line]
    return lines[0].strip()[-200:] if lines else "nothing"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
