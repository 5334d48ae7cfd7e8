"""Energy-based processes: probability models for sets.

>>> import ebp
>>> ebp.metrics.chamfer([[0.0, 0.0]], [[3.0, 4.0]])
50.0

:class:`Curves`, :class:`Clouds`, :class:`Pictures`, :class:`Topics` and :class:`Pattern` learn from arrays,
lists of arrays or frames, in scikit-learn's manners; :func:`load` takes a model that ``ebp train`` made.
:mod:`ebp.metrics` has distances of clouds, :mod:`ebp.plot` figures by matplotlib. The same seed gives the
same bytes as the command line, on any number of threads.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _core, errors, metrics
from ._core import __version__
from ._estimator import Estimator, PathLike
from ._progress import Progress, ProgressLike
from ._settings import presets
from .clouds import CloudArray, Clouds, contact_sheet
from .curves import Curves, Forecast
from .errors import EbpError, EbpWarning, InvalidInputError
from .pattern import Pattern
from .pictures import PictureArray, Pictures
from .topics import Topics

if TYPE_CHECKING:
    from .regression import GaussianProcessRegressor, StudentTProcessRegressor

__all__ = [
    "CloudArray",
    "Clouds",
    "Curves",
    "EbpError",
    "EbpWarning",
    "Estimator",
    "Forecast",
    "GaussianProcessRegressor",
    "InvalidInputError",
    "Pattern",
    "PictureArray",
    "Pictures",
    "Progress",
    "StudentTProcessRegressor",
    "Topics",
    "__version__",
    "contact_sheet",
    "errors",
    "load",
    "metrics",
    "presets",
]

if hasattr(os, "register_at_fork"):
    # A child has none of its parent's threads: its pools are built anew.
    os.register_at_fork(after_in_child=_core._after_fork)

# An interrupted training whose last step takes its time still saves its state.
atexit.register(_core._wait_until_saved)


def load(
    path: PathLike,
    *,
    device: str = "auto",
    precision: str = "f32",
    threads: int | None = None,
    progress: ProgressLike = None,
) -> Any:
    """The model in the folder of a run of ``ebp train``, of ``ebp export`` or of ``save``.

    >>> import tempfile
    >>> import numpy as np
    >>> import ebp
    >>> t = np.linspace(0, 1, 30)
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> _ = ebp.Curves("table", {"process": "gp"}).fit(t, np.cos(t)).save(folder)
    >>> type(ebp.load(folder)).__name__
    'Curves'
    """
    model = _core.load(os.fspath(path), device, precision, threads)
    kinds = {kind: found for found in (Clouds, Curves, Pictures, Topics, Pattern) for kind in found._kinds}
    config = Path(path, "config.toml")
    where: dict[str, Any] = {"preset": str(config)} if config.is_file() else {}
    found = kinds[model.kind](
        **where, device=device, precision=precision, threads=threads, progress=progress
    )
    found._model = model
    return found


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import, which only these two need.
    if name in ("GaussianProcessRegressor", "StudentTProcessRegressor"):
        from . import regression

        return getattr(regression, name)
    raise AttributeError(f"module 'ebp' has no attribute {name!r}")
