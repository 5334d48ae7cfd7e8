"""Models of curves: laws of values at locations, given some of them, with as many peaks as they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core, _html
from ._estimator import Estimator, PathLike
from ._inputs import Double, curves, double, frame_columns, is_frame
from ._progress import ProgressLike, watched
from ._settings import SettingsLike
from .errors import InvalidInputError

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Those of a forecast."""


@dataclass(frozen=True)
class Forecast:
    """Everything that is said about one set at m locations, as ``ebp predict --json`` prints it."""

    set: str
    locations: Double
    """``[m, d_t]``"""
    mean: Double
    """``[m, d_x]``"""
    quantiles: Double
    """``[m, 5]`` of one-dimensional values: 5, 25, 50, 75 and 95 %."""
    values: Double
    """``[grid]``, where densities are known."""
    density: Double
    """``[m, grid]``, p(x | t)."""
    modes: list[list[tuple[float, float, float]]]
    """Of each location the maxima of the density, highest first: value, density and mass."""
    samples: Double
    """Joint draws ``[samples, m, d_x]``."""
    log_density: Double
    """``[m]`` of the values that were asked about, in nats; empty if none were."""
    std_error: Double
    """``[m]``, of the log densities."""

    def _repr_html_(self) -> str:
        head = ["t", "mean", *(f"{100 * q:.0f} %" for q in QUANTILES), "highest modes (mass)"]
        rows = []
        for place in range(len(self.locations))[: _html.SHOWN]:
            modes = ", ".join(f"{v:.3g} ({mass:.2f})" for v, _, mass in self.modes[place][:3])
            t = ", ".join(_html.number(t) for t in self.locations[place])
            mean = ", ".join(_html.number(x) for x in self.mean[place])
            quantiles = [_html.number(x) for x in self.quantiles[place]]
            rows.append([t, mean, *(quantiles or [""] * len(QUANTILES)), modes])
        return _html.table(rows, head) + _html.rest(len(self.locations), "locations")


class Curves(Estimator):
    """A law of functions: fit to sets of measurements, predict one set given some of its elements.

    >>> import numpy as np
    >>> import ebp
    >>> t = np.linspace(-1, 1, 60)
    >>> model = ebp.Curves("table", {"process": "gp"}, seed=1).fit(t, np.sin(3 * t))
    >>> model.predict([0.5], context=(t[::4], np.sin(3 * t[::4]))).round(1)
    array([1.])

    Data are a frame with the columns ``t`` (or ``t1``, ``t2``, ...), ``x`` and perhaps ``set``, as
    ``ebp train --data`` reads them; or arrays of locations and values with a label of each row's set;
    or lists of arrays. Without any, ``fit`` learns from what the setting ``data.source`` names.
    """

    _kinds = ("curves",)

    def __init__(
        self,
        preset: str = "table",
        settings: SettingsLike = None,
        *,
        seed: int | None = None,
        directory: PathLike | None = None,
        device: str = "auto",
        precision: str = "f32",
        threads: int | None = None,
        progress: ProgressLike = None,
    ) -> None:
        super().__init__(
            preset,
            settings,
            seed=seed,
            directory=directory,
            device=device,
            precision=precision,
            threads=threads,
            progress=progress,
        )

    def _columns(self, settings: _core.Settings) -> dict[str, Any]:
        """Columns of frames that were chosen by settings."""
        set_column, locations, values = settings.columns
        return {"set_column": set_column, "location_columns": locations, "value_columns": values}

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        sets: Any = None,
        resume: bool = False,
        replace: bool = False,
        start: PathLike | None = None,
        judge: bool = False,
    ) -> Curves:
        """Learns from sets of values ``y`` at locations ``X``; ``sets`` labels the set of each row."""
        if X is None and (y is not None or sets is not None):
            raise InvalidInputError("`X` must hold the locations of the values, found None")
        chosen = self._columns(self._resolved(in_memory=X is not None))
        data = None if X is None else ("curves", curves(X, y, sets, **chosen))
        self._train(data, resume=resume, replace=replace, start=start, judge=judge)
        return self

    def forecasts(
        self,
        X: Any,
        y: Any = None,
        *,
        context: Any = None,
        sets: Any = None,
        grid: int = 200,
        samples: int = 100,
        rule: str = "mixture",
        seed: int = 0,
    ) -> list[Forecast]:
        """One :class:`Forecast` for every set of ``context``, all at the locations ``X``.

        ``context`` is a frame, a pair of arrays ``(t, x)`` or a list of such pairs; without one nothing is
        known. With ``y`` the log densities of these values are among the answers. ``rule`` is mixture,
        or geometric as the paper has it.
        """
        model = self._ask
        dims = dict(model.sizes)
        chosen = self._columns(model.settings)
        if is_frame(X):
            locations = frame_columns(X, chosen["location_columns"], "t")
            # A table of locations may have the columns of the values, or lack them.
            names = chosen["value_columns"] or frame_columns(X, (), "x")
            if y is None and names and all(name in X.columns for name in names):
                y = X[names].to_numpy()
            X = X[locations].to_numpy()
        at = double(X, "X", dims["location_dim"])
        values = None if y is None else double(y, "y", dims["value_dim"])
        if context is None:
            empty = np.empty((0, dims["location_dim"])), np.empty((0, dims["value_dim"]))
            told = [("all", *empty)]
        elif isinstance(context, tuple) and len(context) == 2:
            told = curves(context[0], context[1], sets)
        else:
            told = curves(context, None, sets, **chosen)
        with watched(self.progress) as callback:
            found = model.predict(
                told,
                at,
                values,
                grid=grid,
                samples=samples,
                rule=rule,
                seed=seed,
                threads=self.threads,
                callback=callback,
            )
        return [Forecast(**one) for one in found]

    def forecast(self, X: Any, y: Any = None, **options: Any) -> Forecast:
        """The :class:`Forecast` of one set; options are those of :meth:`forecasts`."""
        found = self.forecasts(X, y, **options)
        if len(found) != 1:
            message = f"`context` must be one set, found {len(found)}"
            raise InvalidInputError(message, "`forecasts` answers for each of them")
        return found[0]

    def predict(self, X: Any, *, context: Any = None, **options: Any) -> Double:
        """The mean of the values at ``X``, ``[m]`` or ``[m, d_x]``, given the context."""
        options.setdefault("samples", 1 if dict(self._ask.sizes)["value_dim"] == 1 else 100)
        mean = self.forecast(X, context=context, **options).mean
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def sample(self, X: Any, count: int = 1, *, context: Any = None, seed: int = 0) -> Double:
        """Joint draws of the values at ``X``: ``[count, m]`` or ``[count, m, d_x]``."""
        drawn = self.forecast(X, context=context, samples=count, grid=1, seed=seed).samples
        return drawn[..., 0] if drawn.shape[-1] == 1 else drawn

    def score_samples(self, X: Any, y: Any, *, context: Any = None, rule: str = "mixture") -> Double:
        """log p of each value on its own given the context, in nats."""
        options = {"samples": 1, "grid": 1, "rule": rule}
        return self.forecast(X, y, context=context, **options).log_density

    def score(self, X: Any, y: Any, *, context: Any = None) -> float:
        """Mean log p per value: higher is better."""
        return float(np.mean(self.score_samples(X, y, context=context)))
