"""Settings in the words of the command line: a preset or a file, and dotted changes on top."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np

from . import _core
from .errors import InvalidInputError

SettingsLike = Union[Mapping[str, Any], Sequence[str], None]
"""``{"train.num_steps": 500}``, or ``["train.num_steps=500"]`` as ``ebp train --set`` takes it."""

IN_MEMORY = "memory"
"""What ``data.source`` says where sets were given as arrays."""


def presets(kind: str | None = None) -> list[str]:
    """Names of all presets, or of those for one kind of data.

    >>> import ebp
    >>> "shapes" in ebp.presets("clouds")
    True
    """
    return [name for name, found in _core.presets() if kind is None or found == kind]


def as_toml(value: object) -> str:
    """A value as TOML writes it.

    >>> as_toml([1, 2.5, True, "a b"])
    '[1, 2.5, true, "a b"]'
    """
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    message = f"a setting must be text, a number, true, false or a list of them, found {value!r}"
    raise InvalidInputError(message)


def assignments(settings: SettingsLike) -> list[str]:
    """Changes as ``key=value``.

    >>> assignments({"train.num_steps": 5})
    ['train.num_steps=5']
    """
    if settings is None:
        return []
    if isinstance(settings, Mapping):
        return [f"{key}={as_toml(value)}" for key, value in settings.items()]
    if isinstance(settings, str) or not isinstance(settings, Sequence):
        message = f"`settings` must be a mapping or a list of `key=value`, found {settings!r}"
        raise InvalidInputError(message, 'such as {"train.num_steps": 500}')
    return [str(change) for change in settings]
