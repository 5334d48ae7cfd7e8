"""Gaussian and Student-t processes as regressors of scikit-learn, exact and fitted by likelihood.

scikit-learn need not be installed; where it is, these are estimators of its own kind.
"""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

import numpy as np

from . import _core, _html
from ._inputs import Double, double
from .errors import InvalidInputError, not_fitted

try:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.utils.validation import validate_data
except ImportError:  # pragma: no cover

    class BaseEstimator:  # type: ignore[no-redef]
        """What scikit-learn's does for parameters."""

        @classmethod
        def _names(cls) -> list[str]:
            return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Parameters by name."""
            return {name: getattr(self, name) for name in self._names()}

        def set_params(self, **params: Any) -> Any:
            """Changes parameters."""
            for name, value in params.items():
                if name not in self._names():
                    raise InvalidInputError(f"there is no parameter `{name}`", ", ".join(self._names()))
                setattr(self, name, value)
            return self

    class MultiOutputMixin:  # type: ignore[no-redef]
        """Several outputs."""

    class RegressorMixin:  # type: ignore[no-redef]
        """Scored by R²."""

        def score(self, X: Any, y: Any) -> float:
            """R²: the share of the variance that is explained."""
            y = np.asarray(y, dtype=float)
            rest = ((y - self.predict(X)) ** 2).sum()  # type: ignore[attr-defined]
            return float(1 - rest / ((y - y.mean(axis=0)) ** 2).sum())

    validate_data = None

Self = TypeVar("Self", bound="ExactRegressor")


class ExactRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """What both processes share."""

    def _description(self) -> dict[str, Any]:
        return {
            "kernel": str(self.kernel),
            "length_scale": float(self.length_scale),
            "signal_variance": float(self.signal_variance),
            "period": float(self.period),
            "noise_variance": float(self.noise_variance),
            "degrees_of_freedom": self._degrees(),
        }

    def _degrees(self) -> float | None:
        return None

    def _checked(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        if validate_data is not None:
            if y is None:
                return validate_data(self, X, reset=reset, dtype=np.float64, order="C")
            return validate_data(
                self, X, y, reset=reset, dtype=np.float64, order="C", multi_output=True, y_numeric=True
            )
        columns: int | None = None if reset else getattr(self, "n_features_in_", None)
        X = double(X, "X", columns)
        if reset:
            self.n_features_in_ = X.shape[1]
        return X if y is None else (X, np.asarray(y, dtype=np.float64))

    def fit(self: Self, X: Any, y: Any) -> Self:
        """Maximises the likelihood of values ``y`` ``[n]`` or ``[n, outputs]`` at locations ``X``
        ``[n, d]``; the hyperparameters that were given are where it starts."""
        if y is None:
            message = f"this {type(self).__name__} requires y to be passed, but the target y is None"
            raise InvalidInputError(message, "`y` are the values at the locations `X`")
        X, y = self._checked(X, y, reset=True)
        y = np.asarray(y, dtype=np.float64)
        self._is_flat = y.ndim == 1
        values = double(y, "y")
        if len(values) != len(X):
            raise InvalidInputError(f"`y` must have {len(X)} rows, as `X`, found {len(values)}")
        numbers, named, log_marginal, stop = _core.exact_fit(
            self._description(),
            X,
            values,
            int(self.num_restarts),
            bool(self.standardise),
            int(self.max_evaluations),
            int(self.seed),
            self.threads,
        )
        self.X_train_, self.y_train_ = X, values
        self.numbers_ = numbers
        self.hyperparameters_ = dict(named)
        self.log_marginal_likelihood_ = log_marginal
        self.stop_ = stop
        return self

    def _told(self) -> tuple[dict[str, Any], list[float], Double, Double]:
        if not hasattr(self, "numbers_"):
            raise not_fitted(type(self).__name__)
        return self._description(), self.numbers_, self.X_train_, self.y_train_

    def _shaped(self, values: Double) -> Double:
        return values[..., 0] if self._is_flat else values

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means at ``X``; with ``return_std`` also standard deviations, noise included."""
        told = self._told()
        at = self._checked(X, reset=False)
        mean, variance = _core.exact_predict(*told, at, self.threads)
        if return_std:
            return self._shaped(mean), self._shaped(np.sqrt(variance))
        return self._shaped(mean)

    def sample(self, X: Any, count: int = 1, *, seed: int = 0) -> Double:
        """Joint draws of values at ``X``: ``[count, m]`` or ``[count, m, outputs]``."""
        told = self._told()
        at = self._checked(X, reset=False)
        return self._shaped(_core.exact_sample(*told, at, int(count), int(seed), self.threads))

    def log_density(self, X: Any, y: Any) -> Double:
        """log p of each value on its own, in nats; outputs are added."""
        told = self._told()
        at = self._checked(X, reset=False)
        values = double(y, "y", self.y_train_.shape[1])
        return np.array(_core.exact_log_density(*told, at, values, self.threads))

    def _repr_html_(self) -> str:
        rows = [(name, value) for name, value in self.get_params().items()]
        if hasattr(self, "numbers_"):
            found = self.hyperparameters_.items()
            rows += [(f"fitted {name}", _html.number(value)) for name, value in found]
            rows.append(("log marginal likelihood", _html.number(self.log_marginal_likelihood_)))
        return f"<h4>{type(self).__name__}</h4>{_html.table(rows)}"


class GaussianProcessRegressor(ExactRegressor):
    """A Gaussian process: exact, n³ operations, comfortable to some thousand rows.

    ``kernel`` is rbf, rbf-ard, matern12, matern32, matern52, periodic, linear, constant, or sums and
    products of them: ``"matern52 + linear"``. Hyperparameters are of standardised values unless
    ``standardise`` is false; ``max_evaluations=0`` leaves them as they are.

    >>> import numpy as np
    >>> import ebp
    >>> t = np.linspace(0, 6, 40)[:, None]
    >>> model = ebp.GaussianProcessRegressor().fit(t, np.sin(t[:, 0]))
    >>> model.predict([[1.5]]).round(2)
    array([1.])
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        length_scale: float = 1.0,
        signal_variance: float = 1.0,
        period: float = 1.0,
        noise_variance: float = 0.1,
        num_restarts: int = 0,
        max_evaluations: int = 200,
        standardise: bool = True,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.signal_variance = signal_variance
        self.period = period
        self.noise_variance = noise_variance
        self.num_restarts = num_restarts
        self.max_evaluations = max_evaluations
        self.standardise = standardise
        self.seed = seed
        self.threads = threads


class StudentTProcessRegressor(ExactRegressor):
    """A Student-t process: a Gaussian process whose scale is unknown and learnt from what is known.

    ``degrees_of_freedom``, above 2, is where their fit starts.

    >>> import numpy as np
    >>> import ebp
    >>> t = np.linspace(0, 6, 40)[:, None]
    >>> model = ebp.StudentTProcessRegressor("matern52").fit(t, np.sin(t[:, 0]))
    >>> mean, std = model.predict([[1.5], [9.0]], return_std=True)
    >>> bool(std[1] > std[0])
    True
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        degrees_of_freedom: float = 5.0,
        length_scale: float = 1.0,
        signal_variance: float = 1.0,
        period: float = 1.0,
        noise_variance: float = 0.1,
        num_restarts: int = 0,
        max_evaluations: int = 200,
        standardise: bool = True,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.degrees_of_freedom = degrees_of_freedom
        self.length_scale = length_scale
        self.signal_variance = signal_variance
        self.period = period
        self.noise_variance = noise_variance
        self.num_restarts = num_restarts
        self.max_evaluations = max_evaluations
        self.standardise = standardise
        self.seed = seed
        self.threads = threads

    def _degrees(self) -> float | None:
        return float(self.degrees_of_freedom)
