"""Models of documents as bags of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._estimator import Estimator, PathLike
from ._inputs import numeric
from ._progress import ProgressLike
from ._settings import SettingsLike
from .errors import InvalidInputError

Counts = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]


_MOST = 2**32 - 1
"""Of one word in one document."""


def counts(value: Any, num_words: int | None = None) -> tuple[Counts, int]:
    """A matrix of counts ``[documents, words]``, dense, a frame, or sparse of SciPy; and its words."""
    if hasattr(value, "tocsr"):
        rows = value.tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        starts, words, data, shape = rows.indptr, rows.indices, rows.data, rows.shape
    else:
        array = numeric(value.to_numpy() if hasattr(value, "to_numpy") else value, "X")
        if array.ndim != 2:
            message = f"`X` must be counts [documents, words], found the shape {array.shape}"
            raise InvalidInputError(message, "scikit-learn's CountVectorizer makes them of texts")
        places = array != 0
        starts = np.concatenate([[0], np.cumsum(places.sum(axis=1))])
        words, data, shape = np.nonzero(places)[1], array[places], array.shape
    if num_words is not None and shape[1] != num_words:
        message = f"`X` must have {num_words} words, as the model has, found {shape[1]}"
        raise InvalidInputError(message, "count the words of the vocabulary that it was trained with")
    if not (np.isfinite(data).all() and ((data >= 0) & (data <= _MOST)).all() and (data == np.floor(data)).all()):
        message = f"`X` must hold whole numbers from 0 to {_MOST}, found others"
        raise InvalidInputError(message, "weights such as tf-idf are no counts")
    found = (
        np.ascontiguousarray(starts, dtype=np.int64),
        np.ascontiguousarray(words, dtype=np.uint32),
        np.ascontiguousarray(data, dtype=np.uint32),
    )
    return found, int(shape[1])


class Topics(Estimator):
    """Topics of documents: latent Dirichlet allocation (``lda``), the energy-based process (``topics``),
    ``plsi``, ``ctm`` and ``rsm``.

    >>> import numpy as np
    >>> import ebp
    >>> counts = np.random.default_rng(0).poisson(1, (40, 12)) + np.eye(40, 12, dtype=int)
    >>> model = ebp.Topics("lda", {"lda.num_topics": 3, "train.num_steps": 5}, seed=1).fit(counts)
    >>> model.transform(counts).shape
    (40, 3)
    """

    _kinds = ("topics",)

    def __init__(
        self,
        preset: str = "lda",
        settings: SettingsLike = None,
        *,
        vocabulary: Sequence[str] | None = None,
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
        self.vocabulary = vocabulary

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        resume: bool = False,
        replace: bool = False,
        start: PathLike | None = None,
        judge: bool = False,
    ) -> Topics:
        """Learns from counts ``[documents, words]``, or a frame whose columns name the words; ``y`` may
        label the documents. One document in ten is held out, as the settings ``data.num_parts`` and
        ``data.held_out_part`` say."""
        data = None
        self.words_: list[str] | None = None
        if X is not None:
            found, num_words = counts(X)
            columns = [str(name) for name in X.columns] if hasattr(X, "columns") else None
            numbers = [f"word {number + 1}" for number in range(num_words)]
            self.words_ = self._vocabulary(num_words) or columns or numbers
            labels = [] if y is None else [str(label) for label in np.asarray(y).tolist()]
            if y is not None and len(labels) != len(found[0]) - 1:
                message = f"`y` must label {len(found[0]) - 1} documents, found {len(labels)} labels"
                raise InvalidInputError(message)
            data = ("documents", (found, self.words_, labels))
        self._train(data, resume=resume, replace=replace, start=start, judge=judge)
        return self

    def _vocabulary(self, num_words: int) -> list[str] | None:
        if self.vocabulary is None:
            return None
        if len(self.vocabulary) != num_words:
            message = f"`vocabulary` must name {num_words} words, found {len(self.vocabulary)}"
            raise InvalidInputError(message)
        return [str(word) for word in self.vocabulary]

    def _counts(self, X: Any) -> Counts:
        return counts(X, dict(self._ask.sizes)["num_words"])[0]

    @property
    def topics_(self) -> npt.NDArray[np.float64]:
        """How typical each word is of each topic, ``[K, V]``: probabilities, or weights of a network."""
        return self._ask.topics()

    def top_words(self, count: int = 10) -> list[list[str]]:
        """The most typical words of each topic: by the ``vocabulary``, the columns of the frame that was
        learned from, or numbers. A loaded model knows numbers alone: give it a ``vocabulary``."""
        topics = self.topics_
        names = self._vocabulary(topics.shape[1]) or getattr(self, "words_", None)
        order = np.argsort(-topics, axis=1, kind="stable")[:, :count]
        return [[f"word {w + 1}" if names is None else names[w] for w in row] for row in order]

    def transform(self, X: Any, *, seed: int = 0) -> npt.NDArray[np.float64]:
        """How much of each topic is in each document, ``[documents, K]``: shares that sum to one, or the code that
        stands in their place (``topics``)."""
        return self._ask.shares(self._counts(X), seed, self.threads)

    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[np.float64]:
        """``fit``, then ``transform``."""
        return self.fit(X, y).transform(X)

    def score_samples(self, X: Any, *, seed: int = 0) -> npt.NDArray[np.float64]:
        """A lower bound of log p of each document in nats, or an estimate of one."""
        return np.array(self._ask.document_bounds(self._counts(X), seed, self.threads))

    def score(self, X: Any, y: object = None, *, seed: int = 0) -> float:
        """Mean log p per document: higher is better."""
        return float(np.mean(self.score_samples(X, seed=seed)))

    def perplexity(self, X: Any, *, seed: int = 0) -> float:
        """exp of the nats per word of hidden halves of documents: lower is better."""
        return self._ask.perplexity(self._counts(X), seed, self.threads)[0]
