"""Medians, spreads and ratios of runs, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from .child import Answer
from .interleave import Peer, Series
from .work import Work

SINGLE_COLUMNS = ("peer", "model", "format", "threads", "what", "runs", "per CPU s", "per s", "settings")
PAIR_COLUMNS = (
    *("model", "A", "B", "threads", "what", "A per CPU s", "B per CPU s"),
    *("A/B, CPU time", "A/B, clock", "A/B, best runs", "A/A'", "B/B'", "goal", "settings"),
)


def head(columns: Sequence[str]) -> list[str]:
    """The first two lines of a table."""
    return [_row(columns), _row(["---"] * len(columns))]


def single_row(peer: Peer, work: Work, answers: Sequence[Answer]) -> str:
    """One peer, one piece of work."""
    cpu = _spread([work.units / answer.cpu_seconds for answer in answers])
    clock = _spread([work.units / answer.seconds for answer in answers])
    cells = [peer.name, peer.model, peer.form, peer.threads, work.name, len(answers)]
    return _row([*cells, f"{cpu} {work.unit}", clock, _settings(answers[0])])


def pair_row(series: Series, goal: float | None) -> str:
    """One pair, one piece of work. A ratio above 1 means that the first is faster."""
    work, times = series.work, series.times
    rates = [_spread([work.units / answer.cpu_seconds for answer in times[side]]) for side in ("a", "b")]
    pairs = (("a", "b"), ("a2", "b2"))
    cpu = [ratio for one, other in pairs for ratio in _ratios(times[one], times[other])]
    clock = [
        theirs.seconds / ours.seconds
        for one, other in pairs
        for ours, theirs in zip(times[one], times[other], strict=True)
    ]
    best = [
        min(answer.seconds for answer in times[one] + times[two]) for one, two in zip(*pairs, strict=True)
    ]
    noise = [_spread(_ratios(times[side], times[side + "2"])) for side in ("a", "b")]
    settings = [f"{side}: {_settings(times[side][0])}" for side in ("a", "b") if times[side][0].settings]
    return _row(
        [
            series.a.model,
            f"{series.a.name} {series.a.form}",
            f"{series.b.name} {series.b.form}",
            _threads(series),
            work.name,
            f"{rates[0]} {work.unit}",
            f"{rates[1]} {work.unit}",
            f"**{statistics.median(cpu):.2f}** ({_range(cpu)})",
            _spread(clock),
            _figure(best[1] / best[0]),
            *noise,
            f"{goal:.1f}" if goal else "",
            "; ".join(settings),
        ]
    )


def _threads(series: Series) -> str:
    sides = (series.a.threads, series.b.threads)
    return str(sides[0]) if sides[0] == sides[1] else "{}, {}".format(*sides)


def explanation(rounds: int) -> str:
    """What stands under a table of pairs."""
    return (
        f"Medians of {rounds} interleaved rounds (A B A' B', then backwards), in brackets the 10th to the "
        "90th percentile. A ratio is taken within a round; above 1, A is faster. A' and B' are second "
        "processes of the same peers: those ratios are noise. CPU time is of all threads; a thread of "
        "llama.cpp waits for another by spinning, so with several threads and other work on the machine both "
        "of its times say little: then compare the best runs (by the clock), or find a quiet hour."
    )


def names(values: dict[str, str]) -> Iterable[str]:
    """Lines that name machine and versions."""
    return [f"- {name}: {value}" for name, value in values.items()]


def _ratios(ours: Sequence[Answer], theirs: Sequence[Answer]) -> list[float]:
    pairs = zip(ours, theirs, strict=True)
    return [other.cpu_seconds / one.cpu_seconds for one, other in pairs]


def _spread(values: Sequence[float]) -> str:
    return f"{_figure(statistics.median(values))} ({_range(values)})"


def _range(values: Sequence[float]) -> str:
    """10th and 90th percentile; least and most of fewer than three."""
    if len(values) < 3:
        return f"{_figure(min(values))}-{_figure(max(values))}"
    tenths = statistics.quantiles(values, n=10, method="inclusive")
    return f"{_figure(tenths[0])}-{_figure(tenths[-1])}"


def _figure(value: float) -> str:
    """Three digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _settings(answer: Answer) -> str:
    chosen = answer.settings or {}
    return ", ".join(f"{name} {_short(value)}" for name, value in chosen.items())


def _short(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
