"""Tasks: registered from examples, applied to later questions, kept, exported, and refused elsewhere."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

from scheduling.figure import Figure, must
from scheduling.server import Server
from scheduling.wire import Broken, request

from . import survival
from .bench import Bench, answered, ask
from .tickets import Question, intents, routing

NEAR = 1e-6
TASKS = "/decisio/v1/tasks"
"""A task holds for questions of the dialect that it was registered in."""
STATUS_SECONDS_MAX = 400
HEAD_OPTIONS_MIN = 10


@dataclasses.dataclass(frozen=True)
class Known:
    """A question, its record, and what later questions were answered with it."""

    question: Question
    record: Mapping[str, Any]
    answers: list[dict[str, float]]

    @property
    def applied(self) -> list[str]:
        """The parts of the record that change answers."""
        return [name for name in ("calibration", "head") if (self.record.get(name) or {}).get("applied")]


async def run(bench: Bench) -> list[Figure]:
    """One folder of tasks through several servers."""
    folder = bench.folder / "tasks"
    kept = ("--tasks-dir", str(folder))
    rows: list[Figure] = []
    async with bench.serving(*kept) as server:
        known = []
        for question in (routing(skewed=bench.is_fake), intents()):
            one, seen = await registered(server, question)
            known.append(one)
            rows += seen
        rows += [*await listed(server, known), await in_background(server, known[0])]
        full = await exported(server)
    async with bench.serving(*kept) as server:
        rows.append(must("after a restart from --tasks-dir", *await same(server, known)))
    rows += await imported(bench, full, known)
    rows += await elsewhere(bench, kept, full, known)
    return [*rows, *await survival.run(bench, folder, known)]


async def registered(server: Server, question: Question) -> tuple[Known, list[Figure]]:
    """Later questions before and with the task; the rows of it."""
    plain = [await probabilities(server, question, state) for state, _ in question.later]
    began = time.monotonic()
    record = await register(server, question)
    took = time.monotonic() - began
    with_task = [await probabilities(server, question, state, (question.id,)) for state, _ in question.later]
    known = Known(question, record, with_task)
    return known, [
        Figure(f"{question.id}: {len(question.examples)} examples registered in", f"{took:.1f} s"),
        *honest(known, plain),
        Figure(
            f"right of {len(plain)} later questions, without and with the task",
            f"{right(question, plain)}, {right(question, with_task)}",
        ),
        Figure(
            "log loss of them, without and with it",
            f"{log_loss(question, plain):.3f}, {log_loss(question, with_task):.3f}",
        ),
    ]


async def register(server: Server, question: Question) -> dict[str, Any]:
    """The record that a registration is answered with."""
    reply = answered(await request(server.port, TASKS, question.task()), "a registration")
    record: dict[str, Any] = reply.json()
    return record


async def probabilities(
    server: Server, question: Question, state: str, tasks: tuple[str, ...] = ()
) -> dict[str, float]:
    """Of the options; these tasks must be named and no other."""
    reply = await ask(server, question.asked(state))
    named = (
        tuple(reply.headers.get("x-decisio-tasks", "").split(","))
        if "x-decisio-tasks" in reply.headers
        else ()
    )
    if named != tasks:
        raise Broken(f"x-decisio-tasks says {named} and not {tasks}")
    found: dict[str, float] = reply.json()["answers"]["q"]["probabilities"]
    return found


def honest(known: Known, plain: list[dict[str, float]]) -> Iterator[Figure]:
    """That each part says why it is applied or not, and that answers are as it says."""
    for name in ("calibration", "head"):
        part = known.record.get(name)
        if part is None and name == "head" and len(known.question.options) < HEAD_OPTIONS_MIN:
            yield Figure(f"{known.question.id}: {name}", "none, for the options are too few")
            continue
        words, is_complete = said(part or {})
        yield must(f"{known.question.id}: {name}", words, "says whether and why", is_complete)
    changed = sum(not near(one, other) for one, other in zip(plain, known.answers, strict=True))
    yield must(
        f"{known.question.id}: later answers that the task changes; the parts applied",
        f"{changed} of {len(plain)}; {', '.join(known.applied) or 'none'}",
        "some only if one is applied",
        (changed > 0) == bool(known.applied),
    )


def said(part: Mapping[str, Any]) -> tuple[str, bool]:
    """A part of a record in words, and whether it says whether it is applied and why."""
    names = ("cv_logloss_plain", "cv_logloss_fitted", "cv_t")
    numbers = [f"{name} {part[name]}" for name in names if part.get(name) is not None]
    words = f"{'applied' if part.get('applied') else 'not applied'}: {part.get('reason')}"
    return "; ".join([words, *numbers]), isinstance(part.get("applied"), bool) and bool(part.get("reason"))


def near(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether these are the same probabilities."""
    return list(one) == list(other) and all(math.isclose(one[key], other[key], abs_tol=NEAR) for key in one)


def right(question: Question, answers: list[dict[str, float]]) -> int:
    """How often the most probable option is the right one."""
    return sum(
        max(one, key=one.__getitem__) == gold for one, (_, gold) in zip(answers, question.later, strict=True)
    )


def log_loss(question: Question, answers: list[dict[str, float]]) -> float:
    """Mean, natural logarithms."""
    losses = [
        -math.log(max(one[gold], 1e-12)) for one, (_, gold) in zip(answers, question.later, strict=True)
    ]
    return sum(losses) / len(losses)


async def same(server: Server, known: list[Known]) -> tuple[str, str, bool]:
    """Figure, goal and whether every task is applied, with the answers that it had."""
    found = 0
    for one in known:
        states = [state for state, _ in one.question.later]
        now = [await probabilities(server, one.question, state, (one.question.id,)) for state in states]
        found += all(near(a, b) for a, b in zip(now, one.answers, strict=True))
    return f"{found} of {len(known)} tasks with the answers they had", "all", found == len(known)


async def unnamed(server: Server, known: list[Known]) -> int:
    """How many of the tasks are not applied."""
    replies = [await ask(server, one.question.asked(one.question.later[0][0])) for one in known]
    return sum("x-decisio-tasks" not in reply.headers for reply in replies)


async def listed(server: Server, known: list[Known]) -> Iterator[Figure]:
    """What GET says of them, and that another question is not touched."""
    page = answered(await request(server.port, TASKS), "GET /v1/tasks").json()
    ids = sorted(task["id"] for task in page["tasks"])
    expected = sorted(one.question.id for one in known)
    is_well = ids == expected and page["enabled"] is True and bool(page["fingerprint"])
    turned = known[0].question.asked("Anything.")
    criteria = turned["questions"]["q"]["criteria"]
    turned["questions"]["q"]["criteria"] = dict(reversed(criteria.items()))
    reply = await ask(server, turned)
    return iter(
        [
            must("GET /v1/tasks", f"{', '.join(ids)}; head_engine {page['head_engine']}", "all", is_well),
            must(
                "tasks named where the options come in another order",
                reply.headers.get("x-decisio-tasks", "none"),
                "none",
                "x-decisio-tasks" not in reply.headers,
            ),
        ]
    )


async def in_background(server: Server, known: Known) -> Figure:
    """The same registration again, with Prefer: respond-async."""
    prefer = {"prefer": "respond-async"}
    reply = await request(server.port, TASKS, known.question.task(), prefer)
    if reply.status != 202:
        raise Broken(f"Prefer: respond-async is answered with {reply.status}: {reply.body[:200]!r}")
    until = time.monotonic() + STATUS_SECONDS_MAX
    status: dict[str, Any] = {}
    while time.monotonic() < until and status.get("state") not in ("done", "failed"):
        await asyncio.sleep(0.05)
        path = f"{TASKS}/{known.question.id}/status"
        status = answered(await request(server.port, path), "a registration's status").json()
    words, goal, is_same = await same(server, [known])
    return must(f"{known.question.id} again, with respond-async: {status.get('state')}", words, goal, is_same)


async def exported(server: Server) -> list[Any]:
    """What GET /v1/tasks?full=1 lists."""
    tasks: list[Any] = answered(await request(server.port, f"{TASKS}?full=1"), "an export").json()["tasks"]
    return tasks


async def imported(bench: Bench, full: list[Any], known: list[Known]) -> list[Figure]:
    """The export into a server of the same model, then one task removed."""
    async with bench.serving() as server:
        before = await unnamed(server, known)
        reply = answered(await request(server.port, f"{TASKS}/import", {"tasks": full}), "an import")
        loaded = sorted(reply.json()["loaded"])
        rows = [
            must(
                "tasks of another server before the import",
                str(len(known) - before),
                "none",
                before == len(known),
            ),
            must(f"imported: {', '.join(loaded)}", *await same(server, known)),
        ]
        path = f"{TASKS}/{known[0].question.id}"
        removed = answered(await request(server.port, path, method="DELETE"), "a removal").json()
        again = await request(server.port, path, method="DELETE")
        left = await unnamed(server, known)
        is_well = removed == {"removed": known[0].question.id} and again.status == 404 and left == 1
        rows.append(must("removed, and removed again", f"{removed}, then {again.status}", "404", is_well))
    return rows


async def elsewhere(bench: Bench, kept: tuple[str, ...], full: list[Any], known: list[Known]) -> list[Figure]:
    """Another model: the import is refused, and a folder that has them does not apply them."""
    async with bench.serving(other=True) as server:
        reply = await request(server.port, f"{TASKS}/import", {"tasks": full})
        left = await unnamed(server, known)
        import_row = must(
            "imported under another model",
            f"{reply.status} {reply.body.decode(errors='replace')[:120]}; {len(known) - left} applied",
            "422, none",
            reply.status == 422 and left == len(known),
        )
    async with bench.serving(*kept, other=True) as server:
        left = await unnamed(server, known)
        return [
            import_row,
            must(
                "--tasks-dir under another model", f"{len(known) - left} applied", "none", left == len(known)
            ),
        ]
