"""Pictures, documents and point patterns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import ebp

SMALL_PICTURES = {"train.num_steps": 2, "data.num_training": 0, "tasks.max_context": 20, "tasks.num_pictures": 4}


@pytest.fixture(scope="module")
def pictures() -> tuple[ebp.Pictures, np.ndarray]:
    levels = np.random.default_rng(0).integers(0, 255, (24, 9, 8), dtype=np.uint8)
    return ebp.Pictures("digits", SMALL_PICTURES, seed=1).fit(levels), levels


def test_completions_keep_what_is_known(pictures):
    model, levels = pictures
    missing = np.zeros((9, 8), bool)
    missing[5:] = True
    found = model.complete(levels[0], missing, count=3, seed=1)
    assert found.shape == (3, 9, 8) and found.dtype == np.uint8
    assert (found[:, ~missing] == levels[0][~missing]).all()
    assert found.variances.shape == found.energies.shape == (32,)
    assert "data:image/png" in found._repr_html_()
    assert found.tobytes() == model.complete(levels[0], missing, count=3, seed=1).tobytes()


@pytest.mark.parametrize("fill", [True, False])
def test_there_must_be_something_to_complete(pictures, fill):
    model, levels = pictures
    with pytest.raises(ValueError, match="nothing is (known|missing)"):
        model.complete(levels[0], np.full((9, 8), fill))


def test_other_pictures_are_refused(pictures):
    model, levels = pictures
    with pytest.raises(ValueError, match="uint8"):
        ebp.Pictures().fit(levels / 255.0)
    with pytest.raises(ValueError, match="shape"):
        ebp.Pictures().fit(levels[0, 0])
    with pytest.raises(ValueError, match="`missing` must be of the shape"):
        model.complete(levels[0], np.zeros((3, 3)))


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    return np.random.default_rng(0).poisson(1, (60, 15)) + np.eye(60, 15, dtype=int)


SMALL_TOPICS = {"lda.num_topics": 3, "train.num_steps": 5}


@pytest.fixture(scope="module")
def topics(counts) -> ebp.Topics:
    words = [f"w{number}" for number in range(15)]
    return ebp.Topics("lda", SMALL_TOPICS, seed=1, vocabulary=words).fit(counts)


def test_shares_of_topics_sum_to_one(topics, counts):
    shares = topics.transform(counts[:7])
    assert shares.shape == (7, 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(topics.topics_.sum(axis=1), 1, rtol=1e-6)
    assert len(topics.top_words(4)[0]) == 4 and topics.top_words(1)[0][0].startswith("w")
    assert 1 < topics.perplexity(counts) < 40 and np.isfinite(topics.score(counts))


def test_sparse_counts_teach_the_same(topics, counts):
    sparse = ebp.Topics("lda", SMALL_TOPICS, seed=1).fit(scipy.sparse.csr_matrix(counts))
    np.testing.assert_array_equal(sparse.topics_, topics.topics_)
    # Zeros that are written out and words that are named twice mean what they mean in a dense matrix.
    rows, columns = np.indices(counts.shape).reshape(2, -1)
    twice = np.concatenate([counts.ravel(), np.zeros(counts.size, int)]), (np.tile(rows, 2), np.tile(columns, 2))
    odd = scipy.sparse.coo_array(twice, shape=counts.shape)
    np.testing.assert_array_equal(topics.transform(odd), topics.transform(counts))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.full((20, 3), 0.5), "whole numbers"),
        (np.full((20, 3), -1), "whole numbers"),
        (np.full((20, 3), np.nan), "whole numbers"),
        (np.full((20, 3), 2**32), "from 0 to 4294967295"),
        (np.ones(4), r"counts \[documents, words\]"),
    ],
)
def test_what_is_no_count_is_refused(bad, words):
    with pytest.raises(ValueError, match=words):
        ebp.Topics("lda", SMALL_TOPICS).fit(bad)


def test_documents_of_another_vocabulary_are_refused(topics):
    with pytest.raises(ValueError, match="must have 15 words"):
        topics.transform(np.ones((2, 14), int))
    with pytest.raises(ValueError, match="`vocabulary` must name 15 words, found 2"):
        ebp.Topics(vocabulary=["a", "b"]).fit(np.ones((20, 15), int))


def test_words_are_the_columns_of_a_frame(counts):
    frame = pd.DataFrame(counts, columns=[f"column {number}" for number in range(15)])
    model = ebp.Topics("lda", SMALL_TOPICS, seed=1).fit(frame)
    assert all(word.startswith("column ") for topic in model.top_words(3) for word in topic)
    assert model.set_params(vocabulary=[f"w{n}" for n in range(15)]).top_words(1)[0][0].startswith("w")
    with pytest.raises(ValueError, match="`vocabulary` must name 15 words, found 1"):
        model.set_params(vocabulary=["one"]).top_words()


def test_labels_of_documents_must_be_as_many(counts):
    with pytest.raises(ValueError, match="`y` must label 60 documents, found 2 labels"):
        ebp.Topics("lda", SMALL_TOPICS).fit(counts, ["a", "b"])


@pytest.mark.parametrize("preset", ["plsi", "ctm", "topics"])
def test_every_kind_of_topics_answers(preset, counts):
    settings = {f"{preset}.num_topics": 3} if preset != "topics" else {}
    model = ebp.Topics(preset, settings | {"train.num_steps": 2}, seed=1).fit(counts)
    shares = model.transform(counts[:4])
    assert shares.shape == (4, len(model.topics_)) and np.isfinite(model.score(counts[:4]))
    # The energy-based process has codes in place of shares.
    assert preset == "topics" or shares.sum(axis=1) == pytest.approx(np.ones(4), rel=1e-6)


def test_patterns_are_fitted_and_drawn():
    points = np.random.default_rng(0).uniform(size=(80, 2)) * [2, 1]
    model = ebp.Pattern("poisson", window=((0, 2), (0, 1)), seed=1).fit(points)
    # The intensity of a Poisson process is its count over its area.
    assert np.exp(model.coefficients_["intercept"]) == pytest.approx(40, rel=0.05)
    drawn = model.sample(3, seed=2)
    assert len(drawn) == 3 and all(one.shape[1] == 2 for one in drawn)
    assert all((one[:, 0] <= 2).all() and (one[:, 1] <= 1).all() for one in drawn)


def test_events_are_fitted_and_drawn():
    first = ebp.Pattern("hawkes", seed=1).fit()
    times = first.sample(1, seed=1)[0]
    assert times.ndim == 1 and (np.diff(times) > 0).all()
    again = ebp.Pattern("hawkes", seed=1).fit(times)
    assert again.coefficients_["background"] > 0


def test_points_outside_of_the_window_are_refused():
    with pytest.raises(ValueError):
        ebp.Pattern("poisson").fit(np.array([[0.5, 2.0]]))
    with pytest.raises(ValueError, match="`window` must be"):
        ebp.Pattern("poisson", window=3).fit(np.zeros((2, 2)))


GIBBS = ["poisson", "strauss", "hardcore", "geyer", "area", "pairwise", "deepsets", "dpp"]


@pytest.mark.parametrize("preset", GIBBS)
def test_every_preset_of_points_is_fitted_and_drawn(preset):
    # A grid that trembles: its points keep away from each other, as all of these can.
    grid = np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(-1, 2)
    points = (grid + np.random.default_rng(0).uniform(0.3, 0.7, grid.shape)) / 5
    # Neighbours are 0.12 to 0.28 apart: statistics of near pairs need some, a hard core must have none.
    radius = {"strauss": 0.15, "geyer": 0.2}.get(preset, 0.1)
    small = {"interaction.width": 4, "interaction.radius": radius, "evaluation.steps_per_point": 20}
    model = ebp.Pattern(preset, small, seed=1).fit([points, 1 - points])
    drawn = model.sample(2, seed=3)
    assert len(drawn) == 2 and all(((one >= 0) & (one <= 1)).all() and one.shape[1] == 2 for one in drawn)
    assert model.coefficients_ and np.isfinite(list(model.coefficients_.values())).all()
    for again, one in zip(model.sample(2, seed=3), drawn):
        np.testing.assert_array_equal(again, one)
