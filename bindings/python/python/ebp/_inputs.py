"""Arrays, lists of arrays and frames as the core takes them: contiguous, of one type.

An array that is so already is handed on as it is; any other is copied once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidInputError

Single = npt.NDArray[np.float32]
Double = npt.NDArray[np.float64]
CloudsLike = Any
"""An array ``[sets, n, d]`` or ``[n, d]``, a list of arrays ``[n_i, d]``, or a frame with a set column."""

_NUMBERS = "fiub"


def is_frame(value: object) -> bool:
    """Whether it is a frame of pandas, which need not be installed."""
    return hasattr(value, "columns") and hasattr(value, "iloc")


def numeric(value: object, name: str) -> npt.NDArray[Any]:
    """An array of real numbers."""
    if not isinstance(value, np.ndarray):
        value = _in_host_memory(value, name)
    try:
        array = np.asarray(value)
    except ValueError as error:
        message = f"`{name}` must be an array of numbers, found rows of different lengths"
        raise InvalidInputError(message, "sets of different sizes go into a list of arrays") from error
    if array.dtype.kind not in _NUMBERS:
        message = f"`{name}` must hold real numbers, found {array.dtype}"
        raise InvalidInputError(message, "choose the columns of numbers, or convert them")
    return array


_HOST = 1
"""``kDLCPU`` of DLPack: memory that the processor reads."""


def _in_host_memory(value: Any, name: str) -> Any:
    """Arrays of other libraries, which lie where they are read; those on a GPU are refused in words."""
    if hasattr(value, "__dlpack_device__"):
        device = int(value.__dlpack_device__()[0])
        if device == _HOST:
            # Where NumPy's own door is shut, as for numbers that gradients flow through, it says so itself.
            return value if hasattr(value, "__array__") else np.from_dlpack(value)
    elif not hasattr(value, "__cuda_array_interface__"):
        return value
    message = f"`{name}` must be an array in host memory, found one on a GPU"
    raise InvalidInputError(message, "copy it there, as `.cpu().numpy()` of PyTorch or `.get()` of CuPy do")


def single(value: object, name: str) -> Single:
    """Points ``[n, d]`` of single precision; no copy if they are."""
    return np.ascontiguousarray(_rows(value, name), dtype=np.float32)


def points(value: object, name: str) -> Single | Double:
    """Points ``[n, d]`` of the precision they have; no copy if contiguous."""
    array = _rows(value, name)
    if array.dtype == np.float32:
        return np.ascontiguousarray(array, dtype=np.float32)
    return np.ascontiguousarray(array, dtype=np.float64)


def _rows(value: object, name: str) -> npt.NDArray[Any]:
    array = numeric(value.to_numpy() if is_frame(value) else value, name)  # type: ignore[attr-defined]
    if array.ndim != 2 or array.shape[1] == 0:
        message = f"`{name}` must be an array [n, d] of n points, found the shape {array.shape}"
        raise InvalidInputError(message, "one point is an array of the shape [1, d]")
    return array


def double(value: object, name: str, columns: int | None = None) -> Double:
    """Locations or values ``[n, d]`` of double precision; one axis is one column."""
    array = numeric(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        message = f"`{name}` must be an array [n] or [n, d], found the shape {array.shape}"
        raise InvalidInputError(message)
    if columns is not None and array.shape[1] != columns:
        message = f"`{name}` must have {columns} columns, as the model has, found {array.shape[1]}"
        raise InvalidInputError(message)
    return np.ascontiguousarray(array, dtype=np.float64)


def grouped(labels: object, count: int, name: str) -> list[tuple[str, npt.NDArray[np.intp]]]:
    """Names of sets in the order in which they first appear, with their rows."""
    values: Sequence[Hashable] = list(labels) if isinstance(labels, Iterable) else []
    if len(values) != count:
        message = f"`{name}` must name the set of each of {count} rows, found {len(values)} names"
        raise InvalidInputError(message)
    members: dict[Hashable, list[int]] = {}
    for row, label in enumerate(values):
        members.setdefault(label, []).append(row)
    return [(str(label), np.asarray(rows, dtype=np.intp)) for label, rows in members.items()]


def clouds(
    value: CloudsLike, *, set_column: str = "set", name: str = "X"
) -> tuple[list[Single], list[str] | None]:
    """Clouds of single precision and their names, where a frame has some."""
    if is_frame(value):
        return _clouds_of_frame(value, set_column)
    if isinstance(value, np.ndarray) and value.dtype != object:
        if value.ndim == 3:
            return [single(cloud, name) for cloud in value], None
        return [single(value, name)], None
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        message = f"`{name}` must be clouds, found {type(value).__name__}"
        raise InvalidInputError(message, "an array [sets, n, d], a list of arrays [n, d], or a frame")
    found = [single(cloud, f"{name}[{place}]") for place, cloud in enumerate(value)]
    if not found:
        raise InvalidInputError(f"`{name}` must hold at least one set, found none")
    return found, None


def _clouds_of_frame(frame: Any, set_column: str) -> tuple[list[Single], list[str] | None]:
    columns = [column for column in frame.columns if column != set_column]
    array = single(frame[columns].to_numpy(), "X")
    if set_column not in frame.columns:
        return [array], None
    groups = grouped(frame[set_column].tolist(), len(array), set_column)
    return [np.ascontiguousarray(array[rows]) for _, rows in groups], [name for name, _ in groups]


Curve = tuple[str, Double, Double]
"""A set's name, its locations ``[n, d_t]`` and its values ``[n, d_x]``."""


def curves(
    X: Any,
    y: Any = None,
    sets: Any = None,
    *,
    set_column: str | None = None,
    location_columns: Sequence[str] = (),
    value_columns: Sequence[str] = (),
) -> list[Curve]:
    """Sets of values at locations: a frame, two arrays, or lists of arrays."""
    if is_frame(X) and y is None:
        return _curves_of_frame(X, set_column or "set", location_columns, value_columns)
    if y is None:
        if isinstance(X, np.ndarray) or not isinstance(X, Iterable):
            message = "`y` must hold the values at the locations `X`, found None"
            raise InvalidInputError(message, "give both, a list of pairs (t, x), or a frame")
        pairs = list(X)
        for place, pair in enumerate(pairs):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                message = f"`X[{place}]` must be a pair of locations and values"
                raise InvalidInputError(message, "give `y`, a list of pairs (t, x), or a frame")
        X, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return _curves_of_lists(X, y)
    if sets is None and _is_ragged(X) and _is_ragged(y):
        return _curves_of_lists(list(X), list(y))
    t = double(X.to_numpy() if is_frame(X) else X, "X")
    x = double(y.to_numpy() if hasattr(y, "to_numpy") else y, "y")
    if len(t) != len(x):
        message = f"`y` must have a row for each of {len(t)} locations, found {len(x)}"
        raise InvalidInputError(message)
    if sets is None:
        return [("all", t, x)]
    labels = sets.tolist() if hasattr(sets, "tolist") else sets
    return [(name, t[rows], x[rows]) for name, rows in grouped(labels, len(t), "sets")]


def _is_ragged(value: object) -> bool:
    """Whether it is a list of arrays rather than an array."""
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(isinstance(item, np.ndarray) and item.ndim > 0 for item in value)
    )


def _curves_of_lists(X: Sequence[Any], y: Sequence[Any]) -> list[Curve]:
    if len(X) != len(y) or not X:
        message = f"`y` must have values for each of {len(X)} sets, at least one, found {len(y)}"
        raise InvalidInputError(message)
    found = []
    for place, (t, x) in enumerate(zip(X, y)):
        locations, values = double(t, f"X[{place}]"), double(x, f"y[{place}]")
        if len(locations) != len(values):
            message = f"`y[{place}]` must have {len(locations)} rows, as `X[{place}]`, found {len(values)}"
            raise InvalidInputError(message)
        found.append((str(place), locations, values))
    return found


def frame_columns(frame: Any, chosen: Sequence[str], letter: str) -> list[str]:
    """Columns that were chosen, or ``t``, or ``t1``, ``t2``, ...; the words of ``ebp train --data``."""
    if chosen:
        missing = [name for name in chosen if name not in frame.columns]
        if missing:
            message = f"the frame must have the column `{missing[0]}`, found {list(frame.columns)}"
            raise InvalidInputError(message)
        return list(chosen)
    if letter in frame.columns:
        return [letter]
    numbered: list[str] = []
    while f"{letter}{len(numbered) + 1}" in frame.columns:
        numbered.append(f"{letter}{len(numbered) + 1}")
    return numbered


def _curves_of_frame(
    frame: Any, set_column: str, location_columns: Sequence[str], value_columns: Sequence[str]
) -> list[Curve]:
    locations = frame_columns(frame, location_columns, "t")
    values = frame_columns(frame, value_columns, "x")
    for columns, letter, what in [(locations, "t", "location"), (values, "x", "value")]:
        if not columns:
            message = f"the frame must have {what} columns `{letter}`, or `{letter}1`, `{letter}2`, ..."
            help = f"choose them by the setting `data.{what}_columns`; there are {list(frame.columns)}"
            raise InvalidInputError(message, help)
    t, x = double(frame[locations].to_numpy(), "t"), double(frame[values].to_numpy(), "x")
    if set_column not in frame.columns:
        return [("all", t, x)]
    groups = grouped(frame[set_column].tolist(), len(t), set_column)
    return [(name, t[rows], x[rows]) for name, rows in groups]
