"""Figures by matplotlib, which nothing else here needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._estimator import Estimator
from .curves import Forecast
from .errors import InvalidInputError


def _axes(ax: Any, **options: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        message = "`ebp.plot` needs matplotlib, which is not installed"
        raise InvalidInputError(message, "`pip install matplotlib`") from None
    return Figure(layout="constrained").add_subplot(**options)


def density(forecast: Forecast, ax: Any = None, *, context: Any = None) -> Any:
    """p(x | t) as a heat map over locations of one dimension; ``context`` ``(t, x)`` as points.

    >>> import numpy as np
    >>> import ebp, ebp.plot
    >>> t = np.linspace(0, 1, 30)
    >>> model = ebp.Curves("table", {"process": "gp"}).fit(t, np.cos(t))
    >>> ax = ebp.plot.density(model.forecast(t, context=(t[:5], np.cos(t[:5]))))
    >>> ax.get_xlabel()
    't'
    """
    if forecast.locations.shape[1] != 1 or forecast.density.size == 0:
        message = "a density is drawn of values of one dimension over locations of one"
        raise InvalidInputError(message, "`forecast.samples` has draws of any dimension")
    ax = _axes(ax)
    order = np.argsort(forecast.locations[:, 0])
    t = forecast.locations[order, 0]
    ax.pcolormesh(t, forecast.values, forecast.density[order].T, shading="nearest", cmap="viridis")
    if context is not None:
        ax.plot(np.ravel(context[0]), np.ravel(context[1]), "o", color="white", markersize=3)
    ax.set(xlabel="t", ylabel="x")
    return ax


def clouds(cloud: npt.ArrayLike, ax: Any = None, *, size: float = 1.0) -> Any:
    """One cloud of two or three dimensions as points."""
    points = np.asarray(cloud)
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        message = f"`cloud` must be of the shape [n, 2] or [n, 3], found {points.shape}"
        raise InvalidInputError(message)
    three = points.shape[1] == 3
    ax = _axes(ax, **({"projection": "3d"} if three else {}))
    ax.scatter(*points.T, s=size, c=points[:, -1], cmap="viridis")
    ax.set_aspect("equal")
    return ax


def history(model: Estimator, name: str = "nats", ax: Any = None) -> Any:
    """A number of training by its step."""
    steps: list[dict[str, float]] = getattr(model, "history_", [])
    found = [(step["step"], step[name]) for step in steps if name in step]
    if not found:
        known = sorted({key for step in steps for key in step})
        raise InvalidInputError(f"`{name}` was not recorded", f"known are: {', '.join(known)}")
    ax = _axes(ax)
    ax.plot(*zip(*found))
    ax.set(xlabel="step", ylabel=name)
    return ax
