"""What all models share: parameters in scikit-learn's manners, training, files, pickles."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from . import _core, _html
from ._progress import ProgressLike, watched
from ._settings import IN_MEMORY, SettingsLike, assignments
from .errors import EbpWarning, InvalidInputError, not_fitted

Self = TypeVar("Self", bound="Estimator")
PathLike = str | os.PathLike[str]


class Unpacked:
    """A temporary folder that is removed with its owner, in the process that made it: the child of a fork ends
    too, while its parent goes on reading."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="ebp-")
        weakref.finalize(self, self._remove, self.path, os.getpid())

    @staticmethod
    def _remove(path: str, owner: int) -> None:
        if os.getpid() == owner:
            shutil.rmtree(path, ignore_errors=True)


class Estimator:
    """A model of sets. The parameters are those of every model.

    ``preset`` is the name of a preset or a file ending in ``.toml``, ``settings`` changes on top of it in
    the words of ``ebp train --set``: ``{"train.num_steps": 500}``. ``seed`` is that of all random numbers.
    Training keeps its folder in ``directory``, if there is one. ``device`` is ``auto``, ``cpu``, ``cuda``
    or ``cuda:1``; ``precision`` is ``f32``, ``tf32`` or ``bf16`` (on a GPU); ``threads`` are all cores
    unless fewer are asked for. ``progress`` is ``True`` for a bar of tqdm, or a function of one
    :class:`ebp.Progress`.

    After ``fit``: ``history_`` (the numbers of training steps), ``report_`` (what held-out sets say, if
    ``judge`` was asked for).
    """

    _kinds: ClassVar[tuple[str, ...]] = ()
    _set_column: ClassVar[str] = "set"
    _model: _core.Model | None = None
    _keep_alive: Any = None
    preset: str

    def __init__(
        self,
        preset: str,
        settings: SettingsLike = None,
        *,
        seed: int | None = None,
        directory: PathLike | None = None,
        device: str = "auto",
        precision: str = "f32",
        threads: int | None = None,
        progress: ProgressLike = None,
    ) -> None:
        self.preset = preset
        self.settings = settings
        self.seed = seed
        self.directory = directory
        self.device = device
        self.precision = precision
        self.threads = threads
        self.progress = progress

    # Parameters.

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self: Self, **params: Any) -> Self:
        """Changes parameters; what was learned stays until the next ``fit``."""
        for name, value in params.items():
            if name not in self._names():
                message = f"{type(self).__name__} has no parameter `{name}`"
                raise InvalidInputError(message, f"known are: {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not signature[name].default and value != signature[name].default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    # Training.

    def _resolved(self, in_memory: bool) -> _core.Settings:
        changes = assignments(self.settings)
        if self.seed is not None:
            changes.append(f"seed={int(self.seed)}")
        if in_memory:
            changes.append(f"data.source={IN_MEMORY}")
        settings = _core.resolve(str(self.preset), changes)
        if settings.kind not in self._kinds:
            message = f"the preset `{self.preset}` is for {settings.kind}, {type(self).__name__} takes "
            known = [name for name, kind in _core.presets() if kind in self._kinds]
            raise InvalidInputError(message + " or ".join(self._kinds), f"known are: {', '.join(known)}")
        return settings

    def _train(
        self: Self,
        data: tuple[str, Any] | None,
        *,
        resume: bool,
        replace: bool,
        start: PathLike | None,
        judge: bool,
    ) -> Self:
        if resume and replace:
            raise InvalidInputError("`resume` and `replace` cannot both be asked for")
        settings = self._resolved(in_memory=data is not None)
        with watched(self.progress) as callback:
            self._model, self.report_, history = _core.train(
                settings,
                data,
                directory=None if self.directory is None else os.fspath(self.directory),
                existing="resume" if resume else "replace" if replace else "refuse",
                start=None if start is None else os.fspath(start),
                device=self.device,
                precision=self.precision,
                threads=self.threads,
                judged=judge,
                arguments=list(sys.argv),
                callback=callback,
            )
        self._keep_alive = None
        self.history_ = [dict(numbers) for numbers in history]
        return self

    @property
    def _ask(self) -> _core.Model:
        if self._model is None:
            raise not_fitted(type(self).__name__)
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return self._model is not None

    @property
    def settings_text(self) -> str:
        """All settings as TOML: those of the trained model, or those that ``fit`` would take."""
        settings = self._resolved(False) if self._model is None else self._model.settings
        return settings.text

    # Files.

    def save(self, path: PathLike) -> dict[str, Any]:
        """Writes the model into a new or empty folder, without what only training needs.

        :func:`ebp.load` and every command of ``ebp`` take the folder. Says which files it has.
        """
        files, count, no_codes = self._ask.save(os.fspath(path), self.threads)
        if no_codes is not None:
            message = f"saved without codes of the training sets ({no_codes}): sample with prior='standard'"
            warnings.warn(message, EbpWarning, stacklevel=2)
        return {"files": files, "bytes": count}

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_keep_alive"}
        model = state.pop("_model", None)
        if model is not None:
            with tempfile.TemporaryDirectory(prefix="ebp-") as folder:
                path = Path(folder, "model")
                model.save(os.fspath(path), self.threads)
                files = [file for file in sorted(path.rglob("*")) if file.is_file()]
                state["_files"] = {str(f.relative_to(path)): f.read_bytes() for f in files}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        files: dict[str, bytes] | None = state.pop("_files", None)
        self.__dict__.update(state)
        if files is None:
            return
        # Codes and the record of training are read when they are asked for, so the folder must stay.
        folder = Unpacked()
        for name, content in files.items():
            path = Path(folder.path, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._model = _core.load(folder.path, self.device, self.precision, self.threads)
        self._keep_alive = folder

    # Notebooks.

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("preset", str(self.preset))]
        if self._model is None:
            return [*facts, ("trained", "not yet")]
        model = self._model
        steps = f"{model.step}" if model.is_finished else f"{model.step} (not finished)"
        facts += [("model", model.name), ("kind", model.kind), ("steps", steps)]
        if model.seconds is not None:
            facts.append(("seconds", f"{model.seconds:.1f}"))
        facts.append(("device", model.device))
        facts += [(name, str(size)) for name, size in model.sizes]
        facts += [(name, _html.number(value)) for name, value in model.fitted]
        if model.directory is not None and self._keep_alive is None:
            facts.append(("folder", str(model.directory)))
        return facts

    def _pictures(self) -> list[bytes]:
        """Pictures that lie with the model."""
        if self._model is None or self._model.directory is None:
            return []
        plots = Path(self._model.directory, "plots")
        found = sorted(plots.glob("*.png")) if plots.is_dir() else []
        return [path.read_bytes() for path in found[:1] if path.stat().st_size < 2_000_000]

    def _repr_html_(self) -> str:
        pictures = "".join(_html.picture(png, 900) for png in self._pictures())
        return f"<h4>{type(self).__name__}</h4>{_html.table(self._facts())}{pictures}"
