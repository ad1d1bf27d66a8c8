"""HTTP by hand: one connection a request, so that a test knows when each began, ended or was cut.

The standard library's clients either block a thread each or hide the connection; here 50 requests start
at one moment and 1,000 clients hang up in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import random
import time
from collections.abc import Mapping
from typing import Any

HOST = "127.0.0.1"

ANSWER_SECONDS_MAX = 400
"""Longest wait for an answer where the request says nothing: what takes longer is lost."""

WORDS = (
    "the a river house green order late parcel invoice customer wants money back because box was broken "
    "and nobody answered phone mail since monday please help soon thanks"
).split()


class Broken(Exception):
    """The server does what it must never do; its words are the row of the table."""


@dataclasses.dataclass(frozen=True)
class Reply:
    """The one end of a request; status 0 where no answer came, and `lost` says why."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    lost: str = ""

    def json(self) -> Any:
        """The body."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Broken(f"a body that is no JSON ({self.status}): {self.body[:80]!r}") from error

    def number(self, name: str) -> int:
        """A header that is a whole number."""
        try:
            return int(self.headers[name])
        except (KeyError, ValueError) as error:
            raise Broken(f"no number in the header {name} of a {self.status}") from error

    def stages(self) -> dict[str, float]:
        """Milliseconds of `Server-Timing`, by name."""
        parts = (part.strip().partition(";dur=") for part in self.headers.get("server-timing", "").split(","))
        return {name: float(value) for name, _, value in parts if value}

    @property
    def waited_ms(self) -> float:
        """Until work on it started, and from ready until its step; what its own state took is not in it."""
        stages = self.stages()
        return stages["queue"] + stages["engine-wait"]

    @property
    def end(self) -> str:
        """Status and reason, to count by."""
        reason = self.headers.get("x-docket-reason", "")
        return self.lost or f"{self.status} {reason}".strip()


def packed(method: str, path: str, body: Any, headers: Mapping[str, str]) -> bytes:
    """A request's bytes."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = {"host": HOST, "connection": "close", "content-length": str(len(content)), **headers}
    if body is not None:
        lines["content-type"] = "application/json"
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content


async def request(
    port: int,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    method: str = "",
    seconds_max: float = ANSWER_SECONDS_MAX,
) -> Reply:
    """Sends one and waits for its end; a connection that breaks is an end too."""
    began = time.monotonic()
    message = packed(method or ("GET" if body is None else "POST"), path, body, headers or {})
    try:
        async with asyncio.timeout(seconds_max):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(message)
            raw = await reader.read()
            writer.close()
        status, fields, content = _parsed(raw)
    except (OSError, TimeoutError, ValueError, IndexError) as error:
        return Reply(0, {}, b"", time.monotonic() - began, f"no answer ({type(error).__name__})")
    return Reply(status, fields, content, time.monotonic() - began)


def _parsed(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, content = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    fields = {name.lower(): value.strip() for name, _, value in pairs}
    length = int(fields.get("content-length", len(content)))
    if length != len(content):
        raise ValueError(f"{len(content)} bytes of {length}")
    return int(first.split()[1]), fields, content


async def hang_up(port: int, body: Any, after_s: float, abruptly: bool) -> None:
    """Asks, and goes away before the answer: with a reset, or with an end of the stream."""
    _, writer = await asyncio.open_connection(HOST, port)
    with contextlib.suppress(ConnectionError):
        writer.write(packed("POST", "/v1/systemone", body, {}))
        await writer.drain()
    await asyncio.sleep(after_s)
    if abruptly:
        writer.transport.abort()
    else:
        writer.close()


async def decide(
    port: int, state: str, question: str, headers: Mapping[str, str] | None = None, **fields: Any
) -> Reply:
    """One yes/no question, read in one order; `fields` go into the body."""
    return await request(port, "/v1/systemone", decision(state, question, **fields), headers)


def decision(state: str, question: str, **fields: Any) -> dict[str, Any]:
    """The body of [`decide`]."""
    asked = {"q": {"type": "noul", "instructions": question}}
    return {"state": state, "questions": asked, "samples": 1, **fields}


def text(words: int, seed: object) -> str:
    """A text without a meaning, the same for the same seed; it begins with words that no other has."""
    draw = random.Random(str(seed))
    return f"Note {draw.randrange(10**9):09} of {seed}: " + " ".join(draw.choices(WORDS, k=words))


def ends(replies: list[Reply]) -> str:
    """How requests ended: `48 x 200, 2 x 429 wait`."""
    counts: dict[str, int] = {}
    for reply in replies:
        counts[reply.end] = counts.get(reply.end, 0) + 1
    return ", ".join(f"{count} x {end}" for end, count in sorted(counts.items()))
