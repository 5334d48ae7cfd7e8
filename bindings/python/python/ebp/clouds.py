"""Models of clouds: sets of points without locations, of any sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._estimator import Estimator, PathLike
from ._inputs import CloudsLike, Double, Single, clouds, single
from ._progress import ProgressLike, watched
from ._settings import SettingsLike
from .errors import InvalidInputError

_SHOWN = 16
_COLUMNS = 8


def contact_sheet(sets: CloudsLike, columns: int = _COLUMNS) -> bytes:
    """Clouds side by side, as the bytes of a PNG file.

    >>> import numpy as np
    >>> import ebp
    >>> ebp.contact_sheet(np.random.default_rng(0).normal(size=(2, 50, 3)))[:4]
    b'\\x89PNG'
    """
    found, _ = clouds(sets, name="sets")
    return bytes(_core.contact_sheet(found, max(1, min(columns, len(found)))))


class CloudArray(np.ndarray[Any, np.dtype[np.float32]]):
    """Clouds ``[sets, n, d]`` as an ordinary array, which notebooks show as a contact sheet."""

    report: dict[str, Any] | None = None
    """How well points were drawn."""

    def __array_finalize__(self, source: object) -> None:
        self.report = getattr(source, "report", None)

    def _repr_html_(self) -> str | None:
        if self.ndim not in (2, 3) or self.dtype != np.float32 or self.shape[-1] < 2 or self.size == 0:
            return None
        shown = np.asarray(self[None] if self.ndim == 2 else self[:_SHOWN])
        return _html.picture(contact_sheet(shown)) + f"<br/>{self.shape} float32"


class Clouds(Estimator):
    """A law of point clouds: generate, score, clean, embed.

    >>> import numpy as np
    >>> import ebp
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.normal(size=(n, 3)) for n in (40, 50, 60, 45, 55, 50)]
    >>> small = {"train.num_steps": 3, "data.held_out": 2, "model.latent_dim": 4, "batch_size": 2}
    >>> model = ebp.Clouds("shapes", small, seed=1).fit(sets)
    >>> model.sample(2, points=30, seed=7).shape
    (2, 30, 3)
    >>> model.transform(sets, features="mean").shape
    (6, 4)

    Presets of energies of whole sets (``sticks``) and of processes with latents (``bruno``,
    ``statistician``) are taken too; they draw sets in ways of their own.
    """

    _kinds = ("clouds", "set-energies", "latents")

    def __init__(
        self,
        preset: str = "shapes",
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

    def fit(
        self,
        X: CloudsLike | None = None,
        y: object = None,
        *,
        resume: bool = False,
        replace: bool = False,
        start: PathLike | None = None,
        judge: bool = False,
    ) -> Clouds:
        """Learns from clouds, or from what the setting ``data.source`` names if there are none.

        ``resume`` goes on with the run in ``directory``, ``replace`` begins again in its place, ``start``
        is a folder of weights to begin with. ``y`` is ignored.
        """
        data = None if X is None else ("clouds", clouds(X))
        self._train(data, resume=resume, replace=replace, start=start, judge=judge)
        return self

    def sample(
        self,
        count: int = 16,
        points: int | None = None,
        *,
        seed: int = 0,
        prior: str = "kernel",
        codes: npt.ArrayLike | None = None,
        start: str = "grid",
        method: str = "annealed",
        steps: int | None = None,
        step_size: float | None = None,
        proposals: int | None = None,
    ) -> Any:
        """New clouds ``[count, points, d]``: the bytes of ``ebp sample`` with the same seed.

        ``codes`` ``[count, k]``, such as ``transform(X, features="mean")`` gives, stand in place of draws
        from the ``prior`` (kernel, flow, gaussian, standard). ``start`` is grid, sampler,
        sampler-resampled or sampler-rejected, ``method`` annealed, langevin or mala. Where a model draws
        sets of different sizes, they come as a list.
        """
        if count < 1 or (points is not None and points < 1):
            message = f"`count` and `points` must be at least 1, found {count} and {points}"
            raise InvalidInputError(message)
        theta = None if codes is None else single(codes, "codes")
        with watched(self.progress) as callback:
            sets, report = self._ask.sample(
                count,
                points,
                theta,
                prior=prior,
                start=start,
                method=method,
                steps=steps,
                step_size=step_size,
                proposals=proposals,
                seed=seed,
                threads=self.threads,
                callback=callback,
            )
        if len({len(cloud) for cloud in sets}) > 1:
            return sets
        drawn = np.stack(sets).view(CloudArray)
        drawn.report = dict(report)
        return drawn

    def score_details(
        self,
        X: CloudsLike,
        *,
        prior: str = "kernel",
        draws: int = 32,
        most_draws: int = 2048,
        proposals: int = 32768,
        seed: int = 0,
    ) -> _html.Records:
        """What ``ebp score`` says about each set, as a record.

        ``log_likelihood`` and ``std_error`` are of the whole set, in nats; ``holds`` says whether that error
        can be believed, ``is_possible`` whether the points' own ``neighbours`` (nats per point) allow the
        value. ``energies`` and ``log_densities`` are of every point, ``outside`` counts those that the domain
        does not have. ``log_law`` and ``rank`` are as in :meth:`code_scores`. ``draws=0`` takes the Gaussian
        around the mode of θ for its law.
        """
        found, _ = clouds(X)
        with watched(self.progress) as callback:
            records = self._ask.score(
                found,
                prior=prior,
                draws=draws,
                most_draws=most_draws,
                proposals=proposals,
                seed=seed,
                threads=self.threads,
                callback=callback,
            )
        return _html.Records(records)

    def code_scores(self, X: CloudsLike, *, prior: str = "kernel") -> dict[str, Double]:
        """How strange each set is, in the time of encoding it: the columns of ``ebp score --codes-only``.

        ``log_law`` is the log density of its code under the law of θ, ``rank`` the share of training sets for
        which that is as small (NaN where their codes are not known), ``kl`` that of the posterior from N(0, I).

        >>> import numpy as np
        >>> import ebp
        >>> sets = np.random.default_rng(0).normal(size=(9, 20, 3))
        >>> few = {"train.num_steps": 2, "data.held_out": 3, "model.energy_widths": [8]}
        >>> sorted(ebp.Clouds("shapes", few).fit(sets).code_scores(sets))
        ['kl', 'log_law', 'rank']
        """
        found, _ = clouds(X)
        scores = self._ask.score_codes(found, prior=prior, threads=self.threads)
        # None is NaN in an array of numbers.
        columns = np.array(scores, dtype=np.float64).T
        return dict(zip(("log_law", "rank", "kl"), columns))

    def score_samples(self, X: CloudsLike, **options: Any) -> npt.NDArray[np.float64]:
        """log p of each whole set, in nats and in the units of the data; −∞ with a point outside.

        Options are those of :meth:`score_details`.
        """
        return np.array([one["log_likelihood"] for one in self.score_details(X, **options)])

    def score(self, X: CloudsLike, y: object = None, **options: Any) -> float:
        """Mean log p per point: higher is better."""
        found, _ = clouds(X)
        return float(self.score_samples(found, **options).sum() / sum(len(cloud) for cloud in found))

    def transform(self, X: CloudsLike, *, features: str = "pooled") -> Single:
        """Features of each cloud ``[sets, width]``: ``pooled`` for classifiers, or the ``mean`` of θ."""
        if features not in ("pooled", "mean", "log_std_dev"):
            message = f"`features` must be pooled, mean or log_std_dev, found {features!r}"
            raise InvalidInputError(message)
        found, _ = clouds(X)
        with watched(self.progress) as callback:
            codes = self._ask.encode(found, threads=self.threads, callback=callback)
        return codes[("mean", "log_std_dev", "pooled").index(features)]

    def fit_transform(self, X: CloudsLike, y: object = None) -> Single:
        """``fit``, then ``transform``."""
        return self.fit(X).transform(X)

    def denoise(
        self,
        X: CloudsLike,
        *,
        noise: float | None = None,
        steps: int | None = None,
        step_size: float | None = None,
    ) -> Any:
        """Noisy clouds, cleaned: an array for an array of one size, otherwise a list.

        ``noise`` is the standard deviation of the noise in the units of the data.
        """
        found, _ = clouds(X)
        with watched(self.progress) as callback:
            clean = self._ask.denoise(
                found,
                noise=noise,
                steps=steps,
                step_size=step_size,
                threads=self.threads,
                callback=callback,
            )
        if isinstance(X, np.ndarray) and X.dtype != object:
            return (clean[0] if X.ndim == 2 else np.stack(clean)).view(CloudArray)
        return clean
