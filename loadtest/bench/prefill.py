"""What a short decision waits for while long states are read, one after the other, all the time.

The short ones come from the generator's open loop, each on a state of its own. With lanes they are urgent
and the long ones batch work; without lanes all are normal, and what is left is the order within a lane. That
prefers the state with the least work a waiting read, so that a long state with one question lets short ones
go first, and one with many does not.
"""

from __future__ import annotations

import contextlib
import dataclasses

from scheduling.figure import must

from .llama import llama
from .longs import Longs
from .result import Result, Table, number
from .setting import Report, Setting, none_lost, times

SHORTS = "short-decisions"
TIMEOUT_MS = 600_000
"""Of the long ones, the longest that docket lets a request set; the short ones have the server's own."""

FAKE_WORDS = 4_500
"""The fake engine has a token a byte, and a context of 32,768."""

SETTLE_S = 3.0
"""From the first long request on, until shorts are measured."""

SLOTS, CONTEXT = 2, 40_960
"""Of llama-server: a slot for the long one and a slot for the short ones."""

COLUMNS = (
    *("server and model", "beside", "long ones", "shorts answered"),
    *("p50 ms", "p99 ms", "max ms"),
)


@dataclasses.dataclass(frozen=True)
class Scene:
    """A model, the length of its long states, and how many shorts a second it bears beside them."""

    model: str
    words: int
    rate: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class Way:
    """What the shorts meet, by the lane of the long ones; none is nothing."""

    name: str
    workload: str
    long_lane: str = ""
    questions: int = 1

    @property
    def label(self) -> str:
        """Of a report."""
        return f"docket-{self.long_lane}-{self.questions}" if self.long_lane else "docket-alone"


async def run(setting: Setting) -> Result:
    """The small model with states near its longest; with --full the default model with twice that."""
    words = FAKE_WORDS if setting.is_fake else 7_250
    scenes = [Scene(setting.model, words, 2, setting.pick(30, 90))]
    if setting.full and not setting.is_fake:
        scenes.append(Scene(setting.default_model, 15_000, 0.2, 300))
    result = Result([Table(COLUMNS, [])])
    for scene in scenes:
        if absent := setting.missing(scene.model):
            result.notes.append(absent)
            continue
        await _docket(setting, scene, result)
        if setting.llama_server and not setting.is_fake:
            await _llama(setting, scene, result)
        else:
            result.notes.append(f"llama-server with {scene.model}: not measured, no --llama-server PATH.")
    return result


async def _docket(setting: Setting, scene: Scene, result: Result) -> None:
    normal = setting.variant("short-decisions-normal", SHORTS, {'lane = "urgent"': 'lane = "normal"'})
    ways = (
        Way("nothing", SHORTS),
        Way("with lanes: batch, 32 questions each", SHORTS, "batch", 32),
        Way("without lanes: all normal, 1 question each", normal, "normal", 1),
        Way("without lanes: all normal, 32 questions each", normal, "normal", 32),
    )
    async with setting.real(model=scene.model) as server:
        for way in ways:
            fields = {"samples": 1, "priority": way.long_lane, "timeout_ms": TIMEOUT_MS}
            longs = Longs(server.port, "/v1/systemone", scene.words, fields, way.questions)
            async with longs.sent() if way.long_lane else contextlib.nullcontext():
                report = await _shorts(setting, server.url, scene, way.label, "--workload", way.workload)
            told = str(longs) if way.long_lane else ""
            _note(result, (f"docket, {scene.model}", way.name, told), longs, report)


async def _llama(setting: Setting, scene: Scene, result: Result) -> None:
    flags = ("--driver", "llama-server", "--workload", SHORTS)
    async with llama(setting, scene.model, SLOTS, CONTEXT) as url:
        port = int(url.rpartition(":")[2])
        for name, is_loaded in (("nothing", False), ("long prompts", True)):
            longs = Longs(port, "/completion", scene.words, {"n_predict": 1, "cache_prompt": False})
            label = f"llama-{'beside' if is_loaded else 'alone'}"
            async with longs.sent() if is_loaded else contextlib.nullcontext():
                report = await _shorts(setting, url, scene, label, *flags)
            told = str(longs) if is_loaded else ""
            _note(result, (f"llama-server, {scene.model}", name, told), longs, report)


async def _shorts(setting: Setting, url: str, scene: Scene, label: str, *flags: str) -> Report:
    name = f"{label}-{scene.model}"
    load = ("--rate", f"{scene.rate:g}", *times(scene.seconds, SETTLE_S))
    return await setting.load(url, name, "open", *flags, *load)


def _note(result: Result, names: tuple[str, str, str], longs: Longs, report: Report) -> None:
    latency = report["all"]["latency_ms"]
    answered = f"{latency['count']} of {report['all']['sent']}"
    told = tuple(number(latency[part]) for part in ("p50", "p99", "max"))
    result.tables[0].rows.append((*names, answered, *told))
    result.figures.append(none_lost([report], names[1]))
    if longs.fault:
        result.figures.append(must(f"{', '.join(names[:2])}: long ones", longs.fault, "answered", met=False))
