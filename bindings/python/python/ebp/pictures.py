"""Models of pictures: sets of pixels, some of which are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core, _html
from ._estimator import Estimator, PathLike
from ._inputs import numeric
from ._progress import ProgressLike, watched
from ._settings import SettingsLike
from .errors import InvalidInputError

Levels = npt.NDArray[np.uint8]


def levels(value: object, name: str, ndim: int) -> Levels:
    """Pictures of 8 bits a channel with a last axis of channels."""
    array = numeric(value, name)
    if array.dtype != np.uint8:
        message = f"`{name}` must be of uint8, 0 to 255, found {array.dtype}"
        raise InvalidInputError(message, "`(255 * x).round().astype('uint8')` for numbers from 0 to 1")
    if array.ndim == ndim - 1:
        array = array[..., None]
    if array.ndim != ndim or array.shape[-1] not in (1, 3):
        shape = "[count, height, width]" if ndim == 4 else "[height, width]"
        message = f"`{name}` must be of the shape {shape}, perhaps with 3 channels, found {array.shape}"
        raise InvalidInputError(message)
    return np.ascontiguousarray(array)


class PictureArray(np.ndarray[Any, np.dtype[np.uint8]]):
    """Pictures as an ordinary array, which notebooks show side by side."""

    variances: npt.NDArray[np.float64] | None = None
    """Over draws, of every missing pixel on [−1, 1], mean over channels."""
    energies: npt.NDArray[np.float64] | None = None
    """−log p of every missing pixel, in nats."""

    def __array_finalize__(self, source: object) -> None:
        self.variances = getattr(source, "variances", None)
        self.energies = getattr(source, "energies", None)

    def _repr_html_(self) -> str | None:
        if self.ndim not in (3, 4) or self.dtype != np.uint8 or self.size == 0:
            return None
        shown = levels(np.asarray(self[:16]), "pictures", 4)
        return _html.picture(bytes(_core.picture_sheet(shown, min(8, len(shown)))))


class Pictures(Estimator):
    """A law of pictures that fills in what is missing, several times.

    >>> import numpy as np
    >>> import ebp
    >>> sets = np.random.default_rng(0).integers(0, 255, (20, 8, 8), dtype=np.uint8)
    >>> small = {"train.num_steps": 2, "data.num_training": 0, "tasks.max_context": 20}
    >>> model = ebp.Pictures("digits", small, seed=1).fit(sets)
    >>> missing = np.zeros((8, 8), bool)
    >>> missing[4:] = True
    >>> model.complete(sets[0], missing, count=3).shape
    (3, 8, 8)
    """

    _kinds = ("pictures",)

    def __init__(
        self,
        preset: str = "digits",
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
        X: Any = None,
        y: object = None,
        *,
        resume: bool = False,
        replace: bool = False,
        start: PathLike | None = None,
        judge: bool = False,
    ) -> Pictures:
        """Learns from pictures ``[count, height, width]`` of uint8, perhaps with 3 channels; the last ones
        are held out for the test. ``y`` is ignored."""
        data = None if X is None else ("pictures", levels(X, "X", 4))
        self._train(data, resume=resume, replace=replace, start=start, judge=judge)
        return self

    def complete(
        self,
        picture: Any,
        missing: npt.ArrayLike,
        count: int = 8,
        *,
        grain: bool = False,
        rounds: int = 1,
        langevin: int | None = None,
        tile: int | None = None,
        seed: int = 0,
    ) -> PictureArray:
        """Pictures that ``picture`` could be where ``missing`` is true, ``[count, height, width]``.

        Every completion is another draw of the latents: that of ``ebp complete`` with the same seed.
        ``grain`` draws every pixel on its own; ``rounds`` draws in so many portions, each given those before,
        and shows means given the others unless ``grain`` is true; ``langevin`` moves the pixels by so many
        steps. Pictures larger than the model are completed in overlapping tiles; ``tile`` is
        their side, for models that read pictures of any size.
        """
        given = levels(picture, "picture", 3)
        holes = np.asarray(missing, dtype=bool)
        if holes.shape != given.shape[:2]:
            message = f"`missing` must be of the shape {given.shape[:2]} of the picture, found {holes.shape}"
            raise InvalidInputError(message)
        if not holes.any() or holes.all():
            what = "nothing is known" if holes.all() else "nothing is missing"
            raise InvalidInputError(f"there is nothing to complete: {what}", "true in the mask is missing")
        if count < 1 or rounds < 1:
            raise InvalidInputError(f"`count` and `rounds` must be at least 1, found {count} and {rounds}")
        with watched(self.progress) as callback:
            found = self._ask.complete(
                given,
                np.ascontiguousarray(~holes),
                count=count,
                grain=grain,
                rounds=rounds,
                langevin=langevin,
                tile=tile,
                seed=seed,
                threads=self.threads,
                callback=callback,
            )
        pictures = found["pictures"].reshape(count, *given.shape)
        if np.ndim(picture) == 2:
            pictures = pictures[..., 0]
        answer: PictureArray = pictures.view(PictureArray)
        answer.variances, answer.energies = found["variances"], found["energies"]
        return answer
