"""What every line needs: the binary, the model, another model, and a folder."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from scheduling.bench import PATIENT
from scheduling.server import Server, serving, started
from scheduling.wire import Broken, Reply, request

FAKE = ("--engine", "fake")
OTHER_MODEL = "smollm2:135m"
PATIENT_TOO = (*PATIENT, "--timeout", "600s")
"""Nothing is refused for a long wait, or given up."""


@dataclasses.dataclass(frozen=True)
class Bench:
    """The setting of a run."""

    docket: Path
    model: str
    folder: Path
    short: bool
    requests: int

    @property
    def is_fake(self) -> bool:
        """Whether answers are hashes."""
        return self.short

    @property
    def what(self) -> tuple[str, ...]:
        """What is served."""
        return FAKE if self.is_fake else (self.model,)

    @property
    def other(self) -> tuple[str, ...]:
        """Something else."""
        if self.is_fake:
            return (*FAKE, "--served-name", "another")
        return (OTHER_MODEL,) if self.model != OTHER_MODEL else FAKE

    def serving(self, *arguments: str, other: bool = False) -> contextlib.AbstractAsyncContextManager[Server]:
        """A server for a while, ended by SIGTERM."""
        what = self.other if other else self.what
        return serving(self.docket, self.folder, [*what, *PATIENT_TOO, *arguments])

    @contextlib.asynccontextmanager
    async def killed(self, *arguments: str) -> AsyncIterator[Server]:
        """A server for a while, ended by SIGKILL."""
        server = await started(self.docket, self.folder, [*self.what, *PATIENT_TOO, *arguments])
        try:
            yield server
        finally:
            server.process.kill()
            await asyncio.to_thread(server.process.wait)


async def ask(server: Server, body: Mapping[str, Any]) -> Reply:
    """A decision in decisio's shape, which must be answered."""
    return answered(await request(server.port, "/decisio/v1/systemone", body), "a decision")


def answered(reply: Reply, what: str) -> Reply:
    """The reply, if it is one with 200."""
    if reply.status != 200:
        raise Broken(f"{what} ends with {reply.end or reply.status}: {reply.body[:200]!r}")
    return reply
