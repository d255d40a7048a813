"""Layout of a graph: positions of nodes on a page."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

ROUNDS: Final = 300
GOLDEN_ANGLE: Final = math.pi * (3 - math.sqrt(5))
GRAVITY: Final = 0.12
"""Strength of the pull to the center, which keeps separate components on the page."""
REACH: Final = 6.0
"""Range of the repulsion between nodes, as a multiple of the ideal distance of linked nodes."""


def compute_positions(count: int, links: Sequence[tuple[int, int, float]]) -> Points:
    """Return positions in the unit square. The layout is deterministic.

    Nodes repel nearby nodes, and links attract by their weight, less for nodes with many links. The maximum
    step shrinks to zero over the rounds. Nodes start on a spiral, the first ones in the center.
    """
    turns = np.arange(count) * GOLDEN_ANGLE
    points = np.sqrt(np.arange(count) + 0.5)[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
    points /= math.sqrt(max(count, 1))
    near = np.array([(a, b) for a, b, _ in links if a != b], dtype=np.int64).reshape(-1, 2)
    pull = np.array([weight for a, b, weight in links if a != b])
    if len(near):
        pull /= np.sqrt(np.bincount(near.ravel(), minlength=count)[near].min(axis=1))
    ideal = 1.6 / math.sqrt(max(count, 1))
    for turn in range(ROUNDS):
        farthest = 0.15 * (1 - turn / ROUNDS)
        points = _move_points(points, near, pull, ideal=ideal, farthest=farthest)
    return _fit_to_square(points)


def _move_points(
    points: Points, near: NDArray[np.int64], pull: Points, *, ideal: float, farthest: float
) -> Points:
    apart = points[:, None, :] - points[None, :, :]
    square = np.maximum((apart**2).sum(axis=2), 1e-6)
    repelled = np.where(square < (REACH * ideal) ** 2, ideal**2 / square, 0.0)
    force = (apart * repelled[:, :, None]).sum(axis=1) - GRAVITY * points
    if len(near):
        along = points[near[:, 1]] - points[near[:, 0]]
        drawn = along * (np.sqrt((along**2).sum(axis=1)) / ideal * pull)[:, None]
        np.add.at(force, near[:, 0], drawn)
        np.add.at(force, near[:, 1], -drawn)
    length = np.maximum(np.sqrt((force**2).sum(axis=1)), 1e-9)
    moved: Points = points + force * (np.minimum(length, farthest) / length)[:, None]
    return moved


def _fit_to_square(points: Points) -> Points:
    """Center the points in the unit square and scale them to fill it."""
    if not len(points):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.maximum(high - low, 1e-9)
    fitted: Points = np.where(high - low < 1e-6, 0.5, (points - low) / size)
    return fitted
