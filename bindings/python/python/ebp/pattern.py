"""Models of point patterns: points in a window of the plane, or events in time."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._estimator import Estimator, PathLike
from ._inputs import Double, double
from ._progress import ProgressLike
from ._settings import SettingsLike
from .errors import InvalidInputError

Window = tuple[tuple[float, float], tuple[float, float]]


class Pattern(Estimator):
    """A law of points in a window: Gibbs processes (``strauss``, ``geyer``, ...), determinantal (``dpp``);
    or of events in time (``hawkes``).

    >>> import numpy as np
    >>> import ebp
    >>> points = np.random.default_rng(0).uniform(size=(60, 2))
    >>> model = ebp.Pattern("strauss", {"interaction.radius": 0.05}, seed=1).fit(points)
    >>> sorted(model.coefficients_)
    ['interaction', 'intercept']
    >>> model.sample(2, seed=3)[0].shape[1]
    2
    """

    _kinds = ("patterns",)

    def __init__(
        self,
        preset: str = "strauss",
        settings: SettingsLike = None,
        *,
        window: Window = ((0.0, 1.0), (0.0, 1.0)),
        end: float | None = None,
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
        self.window = window
        self.end = end

    def fit(
        self,
        X: Any = None,
        y: object = None,
        *,
        resume: bool = False,
        replace: bool = False,
        start: PathLike | None = None,
        judge: bool = False,
    ) -> Pattern:
        """Fits to a pattern ``[n, 2]`` or a list of patterns of one ``window`` (from and to of x, then of
        y); ``hawkes`` to times ``[n]`` until ``end``, the last one if not said. ``y`` is ignored."""
        data = None if X is None else self._given(X)
        self._train(data, resume=resume, replace=replace, start=start, judge=judge)
        return self

    def _given(self, X: Any) -> tuple[str, Any]:
        if self._resolved(True).process == "hawkes":
            times = double(X, "X", 1)[:, 0]
            if len(times) == 0:
                raise InvalidInputError("`X` must hold times of events, found none")
            return "events", (np.ascontiguousarray(times), float(times[-1] if self.end is None else self.end))
        single = isinstance(X, np.ndarray) and X.ndim == 2 or hasattr(X, "to_numpy")
        patterns = [X.to_numpy() if hasattr(X, "to_numpy") else X] if single else list(X)
        try:
            sides = [[float(low), float(high)] for low, high in self.window]
        except (TypeError, ValueError):
            message = f"`window` must be ((x from, x to), (y from, y to)), found {self.window!r}"
            raise InvalidInputError(message) from None
        if len(sides) != 2 or not patterns:
            message = f"there must be a window of two sides and a pattern, found {len(sides)} sides"
            raise InvalidInputError(message)
        return "patterns", ([double(p, f"X[{n}]", 2) for n, p in enumerate(patterns)], sides)

    @property
    def coefficients_(self) -> dict[str, float]:
        """What was fitted, by name."""
        return dict(self._ask.fitted)

    def sample(self, count: int = 1, *, seed: int = 0) -> list[Double]:
        """New patterns ``[n, 2]``, or times of events ``[n]``: those of ``ebp sample`` with the same seed."""
        if count < 1:
            raise InvalidInputError(f"`count` must be at least 1, found {count}")
        drawn = self._ask.patterns(count, seed, self.threads)
        return [events[:, 0] for events in drawn] if self._ask.name == "hawkes" else drawn
