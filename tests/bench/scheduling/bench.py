"""What every line needs: the binaries, a folder, the model, and how long it may take."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from pathlib import Path

from .server import Generator, Server, serving


@dataclasses.dataclass(frozen=True)
class Bench:
    """The setting of a run."""

    docket: Path
    loadtest: Path
    model: str
    folder: Path
    short: bool
    requests: int

    def fake(
        self, *arguments: str, headers: Mapping[str, str] | None = None
    ) -> contextlib.AbstractAsyncContextManager[Server]:
        """A server whose answers are hashes, in a time that its flags say."""
        return serving(self.docket, self.folder, ["--engine", "fake", *arguments], headers)

    def real(self, *arguments: str) -> contextlib.AbstractAsyncContextManager[Server]:
        """A server of the model."""
        return serving(self.docket, self.folder, [self.model, *arguments])

    @property
    def generator(self) -> Generator:
        """The load generator."""
        return Generator(self.loadtest, self.folder)


PATIENT_MS = 300_000
"""A `timeout_ms` that only a fault exceeds, on any machine."""

PATIENT = ("--wait-urgent", "600s", "--wait-normal", "600s", "--wait-batch", "600s")
"""Flags under which nothing is refused for a long wait: for lines about what is admitted."""
