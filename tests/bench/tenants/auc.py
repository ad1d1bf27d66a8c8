"""How well measurements tell two kinds of trials apart: a classifier, and its AUC with a bound.

The classifier is a logistic regression on standardised features, their logarithms and their ranks, each
trial judged by a fit on the other folds, so that what is reported is of trials that the fit did not see.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

FOLDS = 10
STEPS = 300
RATE = 0.5
RIDGE = 1e-3
Z_95 = 1.959964
"""Of the two-sided 95 % interval; its upper end is the bound."""

Features = Sequence[Sequence[float]]


def held_out_scores(trials: Features, labels: Sequence[bool], seed: int) -> list[float]:
    """A score for each trial, by a classifier that was fitted on other trials; higher is likelier true."""
    columns = _expanded(trials)
    order = list(range(len(labels)))
    random.Random(seed).shuffle(order)
    scores = [0.0] * len(labels)
    for fold in range(FOLDS):
        asked = order[fold::FOLDS]
        hidden = set(asked)
        known = [index for index in order if index not in hidden]
        for index, score in zip(asked, _judged(columns, labels, known, asked), strict=True):
            scores[index] = score
    return scores


def halves(trials: Features, labels: Sequence[bool]) -> list[tuple[float, float, float]]:
    """The AUC of each half with its bounds, by a fit on the other half.

    Where there is nothing to learn, a fit on all folds but one leans away from what that one has more of, so
    that folds come out below one half; halves do not.
    """
    columns, middle = _expanded(trials), len(labels) // 2
    parts = (range(middle), range(middle, len(labels)))
    areas = []
    for known, asked in (parts, parts[::-1]):
        scores, truth = _judged(columns, labels, known, asked), [labels[index] for index in asked]
        areas.append((auc(scores, truth), *bounds(scores, truth)))
    return areas


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """The probability that a true trial has the higher score than a false one; a tie is a half."""
    ranks = _ranks(scores)
    positive = sum(labels)
    negative = len(labels) - positive
    total = sum(rank for rank, label in zip(ranks, labels, strict=True) if label)
    return (total - positive * (positive + 1) / 2) / (positive * negative)


def bounds(scores: Sequence[float], labels: Sequence[bool]) -> tuple[float, float]:
    """The 95 % interval of the AUC, by DeLong's variance (Biometrics 44, 1988)."""
    true = [score for score, label in zip(scores, labels, strict=True) if label]
    false = [score for score, label in zip(scores, labels, strict=True) if not label]
    area = auc(scores, labels)
    over_false = _placed(true, false)
    over_true = [1.0 - place for place in _placed(false, true)]
    variance = _variance(over_false) / len(true) + _variance(over_true) / len(false)
    reach = Z_95 * math.sqrt(variance)
    return area - reach, area + reach


def _placed(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """For each of ours, the share of the others below it, ties counted by half."""
    ranks = _ranks([*ours, *others])[: len(ours)]
    own = _ranks(ours)
    return [(rank - mine) / len(others) for rank, mine in zip(ranks, own, strict=True)]


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values have the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for index in order[at:end]:
            ranks[index] = (at + 1 + end) / 2
        at = end
    return ranks


def _expanded(trials: Features) -> list[list[float]]:
    """Columns of mean 0 and deviation 1, with a constant in front: values, logarithms, ranks."""
    columns = [[1.0] * len(trials)]
    for values in zip(*trials, strict=True):
        logs = [math.log(max(value, 1e-3)) for value in values]
        for column in (list(values), logs, _ranks(values)):
            deviation = math.sqrt(_variance(column))
            if deviation > 0:
                mean = sum(column) / len(column)
                columns.append([(value - mean) / deviation for value in column])
    return [list(row) for row in zip(*columns, strict=True)]


def _fitted(rows: Features, labels: Sequence[bool]) -> list[float]:
    weights = [0.0] * len(rows[0])
    for _ in range(STEPS):
        slope = [RIDGE * weight for weight in weights]
        for row, label in zip(rows, labels, strict=True):
            away = _logistic(_dot(weights, row)) - label
            for place, value in enumerate(row):
                slope[place] += away * value / len(rows)
        weights = [weight - RATE * step for weight, step in zip(weights, slope, strict=True)]
    return weights


def _judged(
    columns: Features, labels: Sequence[bool], known: Sequence[int], asked: Sequence[int]
) -> list[float]:
    """Scores of those asked about, by a fit on those known."""
    weights = _fitted([columns[index] for index in known], [labels[index] for index in known])
    return [_dot(weights, columns[index]) for index in asked]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, value))))
