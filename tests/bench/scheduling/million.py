"""One million tiny requests: the process's own memory is flat once it is warm.

They are sent in ten parts, each by a new run of the generator; memory is read between them, when nothing
is under way.
"""

from __future__ import annotations

import statistics

from .bench import Bench
from .figure import Figure, at_rest, middle, must
from .throughput import CLIENTS, FREE

PARTS = 10
GROWTH_KIB_MAX = 1_024
SHORT_REQUESTS = 20_000


async def run(bench: Bench) -> list[Figure]:
    """The same 100 states throughout."""
    requests = SHORT_REQUESTS if bench.short else bench.requests
    part, kib, answered, sent = requests // PARTS, [], 0, 0
    load = ("--workload", "tiny", "--clients", str(CLIENTS), "--requests", str(part))
    async with bench.fake(*FREE) as server:
        for _ in range(PARTS):
            report = await bench.generator.run(server, "closed", *load)
            answered += report["all"]["outcomes"]["answered"]
            sent += report["all"]["sent"]
            left = await server.not_at_rest()
            kib.append(server.private_kib())
    lost = must(f"of {sent:,} not answered", str(sent - answered), "0", sent == answered)
    return [*figures(kib, part), lost, at_rest(left)]


def figures(kib: list[int], part: int) -> list[Figure]:
    """The rows; what was taken by the first part is warm-up, and a part alone is noise."""
    slope = statistics.linear_regression(range(len(kib) - 1), kib[1:]).slope / part * 1e6
    grown = middle(kib[-3:]) - middle(kib[1:4])
    told = " ".join(f"{value:,}" for value in kib)
    return [
        Figure(f"RssAnon + VmSwap after each {part:,} of {part * len(kib):,} requests, KiB", told),
        Figure(
            "growth from parts 2 to 4 to the last three, medians (slope without the first)",
            f"{grown:+,.0f} KiB ({slope:+,.0f} KiB a million)",
            f"at most {GROWTH_KIB_MAX:,} KiB",
            grown <= GROWTH_KIB_MAX,
        ),
    ]
