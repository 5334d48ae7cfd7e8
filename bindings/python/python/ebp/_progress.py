"""Progress of long work: a bar of tqdm, or a function of one's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Union

from .errors import InvalidInputError


class Progress(NamedTuple):
    """How far a piece of work is."""

    done: int
    total: int
    piece: str
    """What is worked on: ``training``, ``pairs``, ``clouds``, ..."""
    numbers: Mapping[str, float]
    """What the newest training step said; empty for other work."""


ProgressLike = Union[None, bool, Callable[[Progress], object]]
"""``True`` for a bar of tqdm, a function that is told, or nothing."""

Callback = Callable[[int, int, str, Mapping[str, float]], object]

_SHOWN = 3


@contextmanager
def watched(progress: ProgressLike) -> Iterator[Callback | None]:
    """The callback of the core for what the caller wants to see."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar() as callback:
            yield callback
    elif callable(progress):
        tell = progress

        def told(done: int, total: int, piece: str, numbers: Mapping[str, float]) -> None:
            tell(Progress(done, total, piece, numbers))

        yield told
    else:
        message = f"`progress` must be True, a function or None, found {progress!r}"
        raise InvalidInputError(message, "a function gets one `ebp.Progress`")


@contextmanager
def _bar() -> Iterator[Callback]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        message = "`progress=True` needs tqdm, which is not installed"
        raise InvalidInputError(message, "`pip install tqdm`, or give a function") from None
    bar: Any = None
    shown_piece = ""

    def told(done: int, total: int, piece: str, numbers: Mapping[str, float]) -> None:
        nonlocal bar, shown_piece
        if bar is None or piece != shown_piece or bar.total != total:
            if bar is not None:
                bar.close()
            # What was done before, as in a run that goes on, is not part of the speed.
            bar, shown_piece = tqdm(total=total, desc=piece, initial=done), piece
        shown = list(numbers.items())[:_SHOWN]
        if shown:
            bar.set_postfix({name: f"{value:.4g}" for name, value in shown}, refresh=False)
        bar.update(done - bar.n)

    try:
        yield told
    finally:
        if bar is not None:
            bar.close()
