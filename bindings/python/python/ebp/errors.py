"""What can go wrong, in the library's words: what was expected, what was found, where, and what to do."""

from __future__ import annotations

import sys


class EbpError(Exception):
    """Any error of the library. ``help`` says what to do about it, where the message does not."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message, help)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return self.message if self.help is None else f"{self.message}\nhelp: {self.help}"


class InvalidInputError(EbpError, ValueError):
    """What was asked for cannot be done; nothing was tried."""


class DataError(EbpError, ValueError):
    """A file does not hold what it should."""


class FileError(EbpError, OSError):
    """A file or folder cannot be read or written."""

    def __str__(self) -> str:
        return EbpError.__str__(self)


class FailedError(EbpError, RuntimeError):
    """It was tried and went wrong."""


class DivergedError(FailedError):
    """Training met a number that is NaN or infinite."""


class DeviceError(FailedError):
    """The GPU, its driver or one of its libraries is missing or failed."""


class InterruptedTrainingError(FailedError):
    """Training was asked to stop; its state is saved if it has a folder."""


class NotFittedError(EbpError, ValueError, AttributeError):
    """A question to a model that has learned nothing yet."""


class EbpWarning(UserWarning):
    """Something went otherwise than asked for, and the work goes on."""


def not_fitted(name: str) -> Exception:
    """The error for a question to an estimator that has not been fitted; scikit-learn's where that is used."""
    message = f"this {name} has not been fitted yet"
    help = "call `fit` first, or take a trained model by `ebp.load`"
    if "sklearn.exceptions" in sys.modules:
        from sklearn.exceptions import NotFittedError as Theirs

        class Both(NotFittedError, Theirs):  # type: ignore[misc]
            """Caught by either name."""

        Both.__name__ = Both.__qualname__ = "NotFittedError"
        return Both(message, help)
    return NotFittedError(message, help)
