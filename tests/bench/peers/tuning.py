"""The fastest of llama.cpp's settings for a piece of work, so that it is compared at its best."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

from .llama import Model, Runner, Settings
from .work import Prefill, Work

RUNS = 3
"""Runs of each setting; the shortest CPU time counts, which other processes disturb least."""

HOPELESS = 1.2
"""A setting whose first run takes this many times the best is not run again."""


class Tuner:
    """The models and the contexts of one llama.cpp process; each piece of work is made ready once."""

    def __init__(self, path: Path, threads: int) -> None:
        """Loads nothing yet."""
        self.path = path
        self.threads = threads
        self.models: dict[bool, Model] = {}
        self.ready: dict[Work, Runner] = {}

    def runner(self, work: Work, wanted: dict[str, Any] | None = None) -> Runner:
        """The work with the wanted settings, or with the fastest."""
        if work not in self.ready:
            if wanted is not None:
                self.ready[work] = self._runner(Settings(**wanted), work)
            else:
                self.ready[work] = self._fastest(work)
        return self.ready[work]

    def _fastest(self, work: Work) -> Runner:
        """One choice after another, each with the best of the choices before it."""
        best = self._runner(Settings(), work)
        best_seconds = _seconds(best)
        for choice in _choices(work):
            for value in choice["values"]:
                settings = dataclasses.replace(best.settings, **{choice["name"]: value})
                rival = self._runner(settings, work)
                seconds = _seconds(rival, best_seconds)
                if seconds < best_seconds:
                    best, rival, best_seconds = rival, best, seconds
                rival.close()
        return best

    def _runner(self, settings: Settings, work: Work) -> Runner:
        if settings.repack not in self.models:
            self.models[settings.repack] = Model(self.path, settings.repack)
        return Runner(self.models[settings.repack], settings, work, self.threads)


def _choices(work: Work) -> list[dict[str, Any]]:
    """Values to try against the defaults."""
    flash = {"name": "flash", "values": [False]}
    repack = {"name": "repack", "values": [False]}
    if isinstance(work, Prefill):
        longer = [work.tokens] if work.tokens > Settings().ubatch else []
        shorter = [256] if work.tokens > 256 else []
        return [repack, flash, {"name": "ubatch", "values": longer + shorter}]
    unified = {"name": "unified", "values": [False]}
    return [repack, flash, unified, {"name": "ubatch", "values": [256, 128]}]


def _seconds(runner: Runner, best_seconds: float = math.inf) -> float:
    first = runner.run().cpu_seconds
    if first > best_seconds * HOPELESS:
        return first
    return min(first, *(runner.run().cpu_seconds for _ in range(RUNS - 1)))
