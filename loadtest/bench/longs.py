"""Long requests, one after the other: some prefill is under way as long as they are sent."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from scheduling.wire import HOST, Broken, packed, text

from .result import spread


@dataclasses.dataclass
class Longs:
    """Where they go and what they are; then what became of them."""

    port: int
    path: str
    words: int
    """Of each one's text, which no other has."""

    fields: Mapping[str, Any]
    """Of the body, beside text and questions."""

    questions: int = 1
    tokens: list[int] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)
    fault: str = ""

    def __str__(self) -> str:
        """How many ended, the tokens of the longest where the server tells, and the seconds of each."""
        if not self.seconds:
            return "none ended"
        tokens = f"{max(self.tokens):,} tokens, " if any(self.tokens) else ""
        return f"{len(self.seconds)} of {tokens}{spread(self.seconds)} s"

    @contextlib.asynccontextmanager
    async def sent(self) -> AsyncIterator[None]:
        """Sends them for a while; the last one is cut off."""
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _follow(self) -> None:
        for number in itertools.count():
            began = time.monotonic()
            status, computed = await self._one(
                text(self.words, f"long {self.fields} {self.questions} {number}")
            )
            if status != 200:
                self.fault = f"one ends with {status}"
                return
            self.seconds.append(time.monotonic() - began)
            self.tokens.append(computed)

    async def _one(self, long: str) -> tuple[int, int]:
        """Status, and the tokens computed, 0 if not told. Cancelled, it hangs up, and the server stops."""
        of_path = {"prompt": long} if self.path == "/completion" else asked(long, self.questions)
        reader, writer = await asyncio.open_connection(HOST, self.port)
        try:
            writer.write(packed("POST", self.path, of_path | dict(self.fields), {}))
            raw = await reader.read()
        finally:
            writer.transport.abort()
        if not raw:
            raise Broken(f"a long request to {self.path} ends without an answer")
        first, *lines = raw.partition(b"\r\n\r\n")[0].decode("latin-1").lower().split("\r\n")
        headers = dict(line.partition(": ")[::2] for line in lines)
        return int(first.split()[1]), int(headers.get("x-docket-computed-tokens", 0))


def asked(state: str, count: int) -> dict[str, Any]:
    """So many questions about it."""
    questions = {f"q{n}": {"type": "noul", "instructions": f"Is it about parcel {n}?"} for n in range(count)}
    return {"state": state, "questions": questions}
