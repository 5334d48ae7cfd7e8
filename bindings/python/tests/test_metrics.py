"""Distances and collections: values by hand and by SciPy, every kind of array, every wrong one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import ebp
from ebp import metrics


@pytest.fixture(scope="module")
def pair() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(64, 3)), rng.normal(size=(64, 3))


def test_chamfer_is_the_mean_of_squares(pair):
    a, b = pair
    squares = cdist(a, b, "sqeuclidean")
    expected = squares.min(axis=0).mean() + squares.min(axis=1).mean()
    assert metrics.chamfer(a, b) == pytest.approx(expected, rel=1e-12)


def test_chamfer_by_the_other_convention(pair):
    a, b = pair
    lengths = cdist(a, b)
    expected = lengths.min(axis=0).sum() + lengths.min(axis=1).sum()
    found = metrics.chamfer(a, b, convention="sum-of-distances")
    assert found == pytest.approx(expected, rel=1e-12)


def test_emd_is_the_best_assignment(pair):
    a, b = pair
    lengths = cdist(a, b)
    expected = lengths[linear_sum_assignment(lengths)].mean()
    found = metrics.emd(a, b)
    assert float(found) == pytest.approx(expected, rel=1e-9)
    assert found.gap < 1e-9 and found.method == "exact" and found.value == float(found)


def test_emd_is_a_number(pair):
    found = metrics.emd(*pair)
    assert isinstance(found, float) and found + 0 == found.value
    assert np.isclose(np.mean([found, found]), found)
    kept = pickle.loads(pickle.dumps(found))
    assert (kept, kept.method, kept.gap) == (found, found.method, found.gap)


@pytest.mark.parametrize("method", ["approxmatch", "squared"])
def test_soft_matchings_have_no_gap(pair, method):
    found = metrics.emd(*pair, method=method)
    assert found.gap is None and found > 0 and found.method == method


def test_sinkhorn_bounds_the_exact_distance(pair):
    exact, soft = metrics.emd(*pair), metrics.emd(*pair, method="sinkhorn")
    assert exact <= soft <= exact / (1 - soft.gap) * (1 + 1e-9)


def test_single_precision_is_that_of_the_widened_numbers(pair):
    a, b = (cloud.astype(np.float32) for cloud in pair)
    assert metrics.chamfer(a, b) == metrics.chamfer(a.astype(np.float64), b.astype(np.float64))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float16", "float32", "float64", "bool", ">f4"])
def test_every_type_of_number_is_taken(dtype):
    a, b = np.eye(3).astype(dtype), np.ones((2, 3)).astype(dtype)
    assert metrics.chamfer(a, b) == 4.0


def test_strides_do_not_matter(pair):
    a, b = pair
    expected = metrics.chamfer(a, b)
    assert metrics.chamfer(np.asfortranarray(a), b) == expected
    wide = np.zeros((64, 6))
    wide[:, ::2] = a
    assert metrics.chamfer(wide[:, ::2], b) == expected
    assert metrics.chamfer(a[::-1], b) == expected


def test_read_only_arrays_are_read(pair):
    a, b = (cloud.copy() for cloud in pair)
    a.flags.writeable = False
    assert metrics.chamfer(a, b) == metrics.chamfer(*pair)


def test_arrays_are_read_where_they_lie(pair):
    from ebp._inputs import points, single

    a = pair[0].astype(np.float32)
    assert np.shares_memory(single(a, "a"), a) and np.shares_memory(points(a, "a"), a)
    assert np.shares_memory(points(pair[0], "a"), pair[0])
    assert not np.shares_memory(single(pair[0], "a"), pair[0])


class Foreign:
    """An array of a library that has DLPack alone."""

    def __init__(self, array, device=1):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device, 0


def test_arrays_of_other_libraries_are_read_where_they_lie(pair):
    from ebp._inputs import points

    assert np.shares_memory(points(Foreign(pair[0]), "a"), pair[0])
    assert metrics.chamfer(Foreign(pair[0]), pair[1]) == metrics.chamfer(*pair)


class OnGpu:
    __cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (0, False), "version": 3}


@pytest.mark.parametrize("there", [OnGpu(), Foreign(np.zeros((2, 3)), device=2)])
def test_arrays_on_a_gpu_are_refused_in_words(pair, there):
    with pytest.raises(ebp.InvalidInputError, match="`a` must be an array in host memory, found one on a GPU"):
        metrics.chamfer(there, pair[1])


def test_lists_are_taken():
    assert metrics.chamfer([[0, 0]], [[3, 4]]) == 50.0


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.zeros((0, 3)), "at least one point"),
        (np.zeros(3), r"array \[n, d\]"),
        (np.zeros((2, 3, 1)), r"array \[n, d\]"),
        (np.zeros((2, 0)), r"array \[n, d\]"),
        (np.array([[0.0, np.nan, 0.0]]), "point 0, coordinate 1` must be a finite number, found NaN"),
        (np.array([[np.inf, 0.0, 0.0]]), "finite number, found inf"),
        (np.array([["a", "b", "c"]]), "real numbers"),
        (np.array([[1j, 0, 0]]), "real numbers"),
        ([[1.0, 2.0, 3.0], [1.0]], "different lengths"),
    ],
)
def test_what_is_no_cloud_is_refused(bad, words):
    good = np.zeros((2, 3))
    for a, b in [(bad, good), (good, bad)]:
        with pytest.raises(ValueError, match=words):
            metrics.chamfer(a, b)
        with pytest.raises(ebp.InvalidInputError, match=words):
            metrics.emd(a, b)


def test_other_dimensions_are_refused():
    with pytest.raises(ValueError, match="3"):
        metrics.chamfer(np.zeros((2, 3)), np.zeros((2, 2)))


@pytest.mark.parametrize(("field", "value"), [("convention", "mean"), ("threads", 0), ("threads", 10**6)])
def test_wrong_options_name_themselves(pair, field, value):
    with pytest.raises(ValueError, match=f"`{field}` must be .*found"):
        metrics.chamfer(*pair, **{field: value})


def test_an_unknown_method_is_refused(pair):
    with pytest.raises(ValueError, match="`method` must be exact, .*found `best`"):
        metrics.emd(*pair, method="best")
    with pytest.raises(ValueError, match="regularisation"):
        metrics.emd(*pair, method="sinkhorn", regularisation=-1.0)


@pytest.mark.parametrize("distance", ["chamfer", "exact", "squared"])
def test_all_pairs_are_the_single_ones(distance):
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(3, 12, 3)), [rng.normal(size=(n, 3)) for n in (5, 9)]
    found = metrics.pairwise(a, b, distance)
    assert found.shape == (3, 2) and found.dtype == np.float64
    single = metrics.chamfer if distance == "chamfer" else lambda x, y: metrics.emd(x, y, method=distance)
    expected = [[float(single(x, y)) for y in b] for x in a]
    np.testing.assert_array_equal(found, expected)


def test_progress_of_pairs_is_told():
    rng, told = np.random.default_rng(2), []
    metrics.pairwise(rng.normal(size=(20, 60, 3)), rng.normal(size=(20, 60, 3)), "exact", progress=told.append)
    assert told[-1].done <= told[-1].total == 400 and told[-1].piece == "pairs"


def test_comparison_by_hand():
    # As the library's own example: both samples are nearest to the first reference.
    samples, references = [[[0.0], [1.0]], [[0.1], [1.1]]], [[[0.2], [1.2]], [[5.0], [6.0]]]
    found = metrics.compare(samples, references)
    assert found.emd.coverage.value == 0.5 and found.method == "exact"
    assert found.emd.matching_distance.value == pytest.approx(2.5)
    assert found.divergence is None and found.largest_gap < 1e-9
    assert "1-NNA" in found._repr_html_()


def test_comparison_without_emd_and_with_the_grid(rng):
    sets = rng.normal(size=(4, 30, 3)) / 10
    found = metrics.compare(sets, sets + 0.01, emd=None)
    assert found.emd is None and 0 <= found.divergence.value <= 1 and found.outside == 0
    low, high = found.chamfer.coverage.low, found.chamfer.coverage.high
    assert 0 <= low <= found.chamfer.coverage.value <= high <= 1


@pytest.mark.parametrize("bad", [[], np.zeros((2, 3)), "text", np.zeros((0, 4, 3))])
def test_what_is_no_collection_is_refused(bad):
    with pytest.raises(ValueError):
        metrics.compare(bad, np.zeros((1, 2, 3)))


def test_threads_change_nothing(pair):
    rng = np.random.default_rng(7)
    sets = rng.normal(size=(6, 30, 3))
    one, two = (metrics.compare(sets[:3], sets[3:], threads=count) for count in (1, 2))
    assert one == two


def test_answers_go_on_without_a_copy(sets):
    drawn = sets.view(ebp.CloudArray)
    assert np.shares_memory(np.from_dlpack(drawn), sets) and np.shares_memory(np.asarray(drawn), sets)


def test_wrong_pairs_are_refused():
    sets = np.zeros((2, 3, 3))
    sets[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match="finite number, found NaN"):
        metrics.pairwise(sets, sets)
    with pytest.raises(ValueError, match="`distance` must be chamfer, exact, .*found `best`"):
        metrics.pairwise(sets[:1], sets[:1], "best")
    with pytest.raises(ValueError, match="`emd` must be exact, .*found `best`"):
        metrics.compare(sets[:1], sets[:1], emd="best")
