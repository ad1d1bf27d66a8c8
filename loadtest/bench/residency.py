"""A tenant's sessions beside another tenant's sweep over states that are never asked about again."""

from __future__ import annotations

import contextlib
import dataclasses

from scheduling.server import Server

from .result import Result, Table, number
from .setting import Report, Setting, none_lost, times

WORKLOAD = "live-sessions"
TENANTS = ("live", "sweep")
HEADERS = {"x-api-key": "sk-live"}
LIVE_SHARE = 0.2
ALONE = {"live = 20\nsweep = 80": "live = 100\nsweep = 0", "share = 80": "share = 0"}

SPEED = ("--fake-step-ms", "1", "--fake-token-us", "1")
COLUMNS = (
    *("engine and memory", "sweep", "swept states", "sessions asked", "found tokens a decision"),
    *("p50 ms", "p99 ms"),
)


@dataclasses.dataclass(frozen=True)
class Scene:
    """An engine with little memory, and the requests a second that it bears."""

    name: str
    rate: float
    flags: tuple[str, ...]
    is_fake: bool

    def serving(
        self, setting: Setting, keys: tuple[str, ...]
    ) -> contextlib.AbstractAsyncContextManager[Server]:
        """A fresh server."""
        make = setting.fake if self.is_fake else setting.real
        return make(*self.flags, *keys, headers=HEADERS)


async def run(setting: Setting) -> Result:
    """The sessions alone, then beside the sweep, on the fake engine and on the model."""
    seconds = setting.pick(20, 90)
    fake = ("--kv-bytes", "3MiB", *SPEED)
    scenes = (
        Scene("fake, 49,152 tokens", 100, fake, is_fake=True),
        Scene(f"{setting.model}, 256 MiB", 5, ("--kv-bytes", "256MiB"), is_fake=False),
    )
    alone = setting.variant("sessions-alone", WORKLOAD, ALONE)
    keys = tuple(word for name in TENANTS for word in ("--api-key", f"{name}=sk-{name}"))
    given = [word for name in TENANTS for word in ("--key", f"{name}=sk-{name}")]
    result, reports = Result([Table(COLUMNS, [])]), []
    for scene in scenes[:1] if setting.is_fake else scenes:
        kind = "fake" if scene.is_fake else "model"
        for name, workload, share in (("off", alone, LIVE_SHARE), ("on", WORKLOAD, 1.0)):
            async with scene.serving(setting, keys) as server:
                flags = ("--workload", workload, "--rate", f"{scene.rate * share:g}", *given)
                report = await setting.load(server.url, f"{kind}-{name}", "open", *flags, *times(seconds, 2))
            result.tables[0].rows.append(_row(scene.name, name, report))
            reports.append(report)
    result.figures.append(none_lost(reports))
    return result


def _row(scene: str, name: str, report: Report) -> tuple[str, ...]:
    live, swept = (report["tenants"][tenant] for tenant in TENANTS)
    answered, latency = live["outcomes"]["answered"], live["latency_ms"]
    found = live["cached_tokens"] / max(answered, 1)
    told = (number(found), number(latency["p50"]), number(latency["p99"]))
    return (scene, name, f"{swept['outcomes']['answered']:,}", f"{answered:,} of {live['sent']:,}", *told)
