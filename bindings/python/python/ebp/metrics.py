"""Distances of clouds and comparisons of collections: plain functions on arrays, all work in Rust.

Sets may have any sizes and any dimension. Contiguous arrays of float32 or float64 are read where they
lie; others are copied once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._inputs import CloudsLike, Double, Single, is_frame, points
from ._progress import ProgressLike, watched
from .errors import InvalidInputError


def chamfer(
    a: npt.ArrayLike, b: npt.ArrayLike, *, convention: str = "mean-of-squares", threads: int | None = None
) -> float:
    """The Chamfer distance of two clouds ``[n, d]`` and ``[m, d]``.

    ``mean-of-squares`` is mean_x min_y |x−y|² + mean_y min_x |x−y|², ``sum-of-distances`` is
    Σ_x min_y |x−y| + Σ_y min_x |x−y|.

    >>> chamfer([[0.0], [1.0]], [[0.0], [3.0]])
    2.5
    """
    return _core.chamfer(points(a, "a"), points(b, "b"), convention, threads)


class EarthMover(float):
    """An earth mover's distance: a number that knows how it was found."""

    method: str
    """exact, approxmatch, squared or sinkhorn."""
    gap: float | None
    """How much smaller the exact distance can be at most, as a share; None where that is not known."""

    def __new__(cls, value: float, method: str, gap: float | None) -> EarthMover:
        self = super().__new__(cls, value)
        self.method, self.gap = method, gap
        return self

    def __getnewargs__(self) -> tuple[float, str, float | None]:  # type: ignore[override]
        return float(self), self.method, self.gap

    @property
    def value(self) -> float:
        """The number alone."""
        return float(self)

    def _repr_html_(self) -> str:
        gap = "no bound on its error" if self.gap is None else f"gap {self.gap:.1e}"
        return f"{float(self):.8g} <small>({self.method}, {gap})</small>"


def emd(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    method: str = "exact",
    regularisation: float = 0.01,
    threads: int | None = None,
) -> EarthMover:
    """The earth mover's distance of two clouds: the least mean way from one to the other.

    ``exact`` comes with a certificate (its gap is about 1e-14), ``approxmatch`` is the soft matching of
    most papers (20 to 50 % above), ``squared`` the same with squared distances, ``sinkhorn`` has an
    entropy term and a gap. Clouds of different sizes carry the same mass.

    >>> found = emd([[0.0], [1.0]], [[0.0], [0.5], [1.0]])
    >>> round(found, 6), found.method, found.gap < 1e-12
    (0.166667, 'exact', True)
    """
    value, gap = _core.emd(points(a, "a"), points(b, "b"), method, regularisation, threads)
    return EarthMover(value, method, gap)


def collection(value: CloudsLike, name: str) -> list[Single | Double]:
    """Clouds of the precision they have."""
    if is_frame(value) or isinstance(value, (str, bytes)):
        raise InvalidInputError(f"`{name}` must be an array [sets, n, d] or a list of arrays [n, d]")
    if isinstance(value, np.ndarray) and value.dtype != object and value.ndim != 3:
        message = f"`{name}` must be of the shape [sets, n, d], found {value.shape}"
        raise InvalidInputError(message, "one cloud is a list of one array")
    found = [points(cloud, f"{name}[{place}]") for place, cloud in enumerate(value)]
    if not found:
        raise InvalidInputError(f"`{name}` must hold at least one set, found none")
    return found


def pairwise(
    a: CloudsLike,
    b: CloudsLike,
    distance: str = "chamfer",
    *,
    convention: str = "mean-of-squares",
    regularisation: float = 0.01,
    threads: int | None = None,
    progress: ProgressLike = None,
) -> Double:
    """The distances of every cloud of ``a`` from every cloud of ``b``, in one call.

    ``distance`` is chamfer, or a method of :func:`emd`: exact, approxmatch, squared, sinkhorn.

    >>> pairwise([[[0.0], [1.0]]], [[[0.0], [3.0]], [[0.0], [1.0]]])
    array([[2.5, 0. ]])
    """
    rows, columns = collection(a, "a"), collection(b, "b")
    with watched(progress) as callback:
        found, _ = _core.pairs(rows, columns, distance, convention, regularisation, threads, callback)
    return found


class Estimate(NamedTuple):
    """A number and its 95 % interval by bootstrap."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class NeighbourMetrics:
    """What nearest neighbours say about two collections."""

    matching_distance: Estimate
    """MMD: mean over references of the distance to the nearest sample; lower is better."""
    coverage: Estimate
    """COV: share of references that are nearest to at least one sample."""
    one_nn_accuracy: Estimate
    """1-NNA: share of sets whose nearest other set is of their own kind; one half is ideal."""
    sample_accuracy: Estimate
    """The same of the samples alone."""
    reference_accuracy: Estimate
    """The same of the references alone."""


@dataclass(frozen=True)
class Comparison:
    """How far samples are from references."""

    chamfer: NeighbourMetrics
    """By Chamfer distance, mean of squares."""
    emd: NeighbourMetrics | None
    """By earth mover's distance, if asked for."""
    method: str | None
    """How that was computed."""
    largest_gap: float | None
    """Of all its distances, where known."""
    divergence: Estimate | None
    """JSD: Jensen-Shannon divergence of all points on a grid, in bits; of three dimensions only."""
    outside: float | None
    """The share of points outside of that grid's ball of radius 1/2."""

    def _repr_html_(self) -> str:
        def cell(estimate: Estimate) -> str:
            return f"{estimate.value:.4g} ({estimate.low:.4g} to {estimate.high:.4g})"

        head = ["distance", "MMD", "COV", "1-NNA"]
        found = [("chamfer", self.chamfer), (self.method, self.emd)]
        rows = [
            [name, cell(one.matching_distance), cell(one.coverage), cell(one.one_nn_accuracy)]
            for name, one in found
            if one is not None
        ]
        divergence = "" if self.divergence is None else f"JSD {cell(self.divergence)}"
        return _html.table(rows, head) + divergence


def _neighbours(found: dict[str, Any]) -> NeighbourMetrics:
    return NeighbourMetrics(**{name: Estimate(*numbers) for name, numbers in found.items()})


def compare(
    samples: CloudsLike,
    references: CloudsLike,
    *,
    emd: str | None = "exact",
    regularisation: float = 0.01,
    seed: int = 0,
    threads: int | None = None,
    progress: ProgressLike = None,
) -> Comparison:
    """MMD, COV, 1-NNA and JSD of generated sets: the numbers of ``ebp metrics`` with the same seed.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> found = compare(rng.normal(size=(4, 20, 3)), rng.normal(size=(5, 20, 3)), emd=None)
    >>> 0 <= found.chamfer.coverage.value <= 1
    True
    """
    generated, real = collection(samples, "samples"), collection(references, "references")
    with watched(progress) as callback:
        found = _core.compare(generated, real, emd, regularisation, seed, threads, callback)
    divergence = found.get("divergence")
    return Comparison(
        chamfer=_neighbours(found["chamfer"]),
        emd=_neighbours(found["emd"]) if "emd" in found else None,
        method=emd,
        largest_gap=found.get("largest_gap"),
        divergence=None if divergence is None else Estimate(*divergence),
        outside=found.get("outside"),
    )
