"""All sections, in the order in which they run: what each measures, where its table stands, and minutes."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

from . import (
    burst,
    drain,
    generator,
    hog,
    kill,
    leave,
    looking,
    pages,
    prefill,
    prewarm,
    registration,
    residency,
    scripts,
    side_by_side,
    zipf,
)
from .pages import Page
from .result import Result
from .setting import Setting


@dataclasses.dataclass(frozen=True)
class Section:
    """A table, or a few that belong together."""

    name: str
    title: str
    part: str
    """The part of docs/BENCHMARKS.md."""

    minutes: tuple[int, int]
    """About, short and full, on two cores; without what cargo builds first."""

    source: Callable[[Setting], Awaitable[Result]] | Page

    async def run(self, setting: Setting) -> Result:
        """Measures it."""
        if isinstance(self.source, Page):
            return await self.source.run(setting)
        return await self.source(setting)

    def commands(self, is_full: bool) -> str:
        """How to make it alone."""
        if isinstance(self.source, Page):
            return "; ".join(f"`{command}`" for command in self.source.commands(is_full))
        return f"`run-all {'--full ' if is_full else ''}{self.name}`"


LOAD = "Under load"
SECTIONS = (
    Section("policy", "Order and admission, in virtual time", "Order and admission", (4, 4), pages.POLICY),
    Section("prefill", "Short decisions behind long prefills", LOAD, (3, 40), prefill.run),
    Section("hog", "A tenant that sends four of five requests", LOAD, (3, 8), hog.run),
    Section("burst", "50 requests on one cold state", LOAD, (2, 3), burst.run),
    Section("prewarm", "Prewarmed and cold states", LOAD, (4, 15), prewarm.run),
    Section("registration", "What registrations cost those who ask", LOAD, (3, 14), registration.run),
    Section("kill", "The engine dies under load", LOAD, (2, 5), kill.run),
    Section("drain", "SIGTERM under load", LOAD, (1, 1), drain.run),
    Section("leave", "Half of the clients leave", LOAD, (2, 8), leave.run),
    Section("residency", "Live sessions beside a sweep", LOAD, (2, 7), residency.run),
    Section("zipf", "Skew and number of states", LOAD, (2, 6), zipf.run),
    Section("scripts", "States in several scripts", LOAD, (1, 4), scripts.run),
    Section("looking", "What looking at the live view costs", LOAD, (1, 3), looking.run),
    Section("generator", "The generator's own cost", LOAD, (1, 4), generator.run),
    Section("peers", "docket beside llama-server", "Beside llama-server", (6, 80), side_by_side.run),
    Section("kernels", "Products and steps", "Kernels and engine", (1, 5), pages.KERNELS),
    Section("engines", "The engine beside llama.cpp", "Kernels and engine", (5, 90), pages.ENGINES),
    Section("planning", "What planning costs", "Order and admission", (2, 2), pages.PLANNING),
    Section(
        "scheduling",
        "What scheduling promises",
        "Scheduling through the running binary",
        (3, 16),
        pages.SCHEDULING_LINES,
    ),
    Section("memory", "Memory while a model is loaded", "Memory at load", (1, 1), pages.MEMORY),
    Section("answers", "Quality of answers", "Quality of the default model", (3, 600), pages.ANSWERS),
    Section(
        "decisio", "Stages, tasks, health", "decisio's stages, tasks and health", (1, 12), pages.DECISIO_LINES
    ),
    Section("extraction", "Numbers and excerpts", "Extraction", (2, 45), pages.EXTRACTION),
    Section("tenants", "What tenants learn of each other", "Tenants", (2, 60), pages.TENANTS),
    Section("slow", "Slow clients and bombs", "Tenants", (1, 6), pages.SLOW),
    Section("tokens", "Tokens of a question", "Tokens of a question", (1, 1), pages.TOKENS),
    Section("golden", "Log-probabilities", "Against llama.cpp on the same weights", (2, 2), pages.GOLDEN),
)
