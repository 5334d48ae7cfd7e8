"""Curves: frames, arrays and lists; forecasts, draws and densities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from small import SMALL_CURVES

import ebp

SMALL_TABLE = SMALL_CURVES | {"train.num_steps": 3}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    t = rng.uniform(-1, 1, 240)
    return pd.DataFrame({"set": np.repeat(np.arange(12), 20), "t": t, "x": np.sin(3 * t)})


@pytest.fixture(scope="module")
def of_table(frame) -> ebp.Curves:
    return ebp.Curves("table", SMALL_TABLE, seed=1).fit(frame)


def test_forecasts_are_laws(curves):
    found = curves.forecast([-0.5, 0.5], context=([0.0, 0.2], [0.1, 0.3]), samples=7, grid=50)
    assert found.mean.shape == (2, 1) and found.quantiles.shape == (2, 5)
    assert found.density.shape == (2, 50) and found.samples.shape == (7, 2, 1)
    width = found.values[1] - found.values[0]
    np.testing.assert_allclose(found.density.sum(axis=1) * width, 1, rtol=1e-9)
    assert (np.diff(found.quantiles, axis=1) >= 0).all() and found.modes[0][0][2] < 1 + 1e-9
    assert "highest modes" in found._repr_html_()


def test_frames_arrays_and_lists_teach_the_same(of_table, frame):
    expected = of_table.predict([0.1, 0.4])
    groups = [one for _, one in frame.groupby("set", sort=False)]
    lists = [one["t"].to_numpy() for one in groups], [one["x"].to_numpy() for one in groups]
    pairs = list(zip(*lists))
    for data in ((frame["t"], frame["x"], frame["set"]), (*lists, None), (pairs, None, None)):
        model = ebp.Curves("table", SMALL_TABLE, seed=1).fit(data[0], data[1], sets=data[2])
        np.testing.assert_array_equal(model.predict([0.1, 0.4]), expected)


def test_chosen_columns_are_those_of_the_command_line(of_table, frame):
    renamed = frame.rename(columns={"t": "hour", "x": "rain", "set": "day"})
    chosen = {
        "data.location_columns": ["hour"],
        "data.value_columns": ["rain"],
        "data.set_column": "day",
    }
    model = ebp.Curves("table", SMALL_TABLE | chosen, seed=1).fit(renamed)
    one = renamed[renamed["day"] == 0]
    found = model.forecast(one[["hour"]], context=one)
    expected = of_table.forecast(one["hour"], context=(one["hour"], one["rain"]))
    np.testing.assert_array_equal(found.density, expected.density)


def test_several_sets_are_told_apart(of_table, frame):
    found = of_table.forecasts([0.0], context=frame[frame["set"] < 3])
    assert [one.set for one in found] == ["0", "1", "2"]
    with pytest.raises(ValueError, match="`context` must be one set, found 3"):
        of_table.forecast([0.0], context=frame[frame["set"] < 3])


def test_values_have_log_densities(curves):
    t, x = [0.0, 0.5], [0.1, -0.2]
    found = curves.score_samples(t, x, context=([0.3], [0.2]))
    assert found.shape == (2,) and np.isfinite(found).all()
    assert curves.score(t, x, context=([0.3], [0.2])) == pytest.approx(found.mean())


def test_draws_are_joint_and_repeatable(curves):
    drawn = curves.sample([0.0, 0.5, 0.7], 6, seed=2)
    assert drawn.shape == (6, 3)
    np.testing.assert_array_equal(drawn, curves.sample([0.0, 0.5, 0.7], 6, seed=2))


def test_values_of_two_dimensions(rng):
    t = rng.uniform(size=60)
    x = np.stack([np.sin(t), np.cos(t)], axis=1)
    model = ebp.Curves("table", SMALL_TABLE | {"process": "gp"}).fit(t, x)
    assert model.predict([0.2, 0.3], context=(t[:10], x[:10])).shape == (2, 2)
    assert model.sample([0.2], 3).shape == (3, 1, 2)
    assert dict(model._ask.fitted)["length_scale"] > 0


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.zeros(3), None, "`y` must hold the values"),
        (np.zeros(3), np.zeros(2), "row for each of 3 locations, found 2"),
        (np.zeros((3, 2, 2)), np.zeros(3), r"array \[n\] or \[n, d\]"),
        ([0.0, np.nan], [0.0, 1.0], "finite"),
        ([(np.zeros(2), np.zeros(3))], None, "must have 2 rows"),
        ([1.0, 2.0], None, "must be a pair"),
        (None, np.zeros(3), "`X` must hold the locations"),
        (pd.DataFrame({"a": [1.0]}), None, "location columns `t`"),
    ],
)
def test_what_is_no_curve_is_refused(X, y, words):
    with pytest.raises(ValueError, match=words):
        ebp.Curves("table", SMALL_TABLE).fit(X, y)


def test_labels_must_be_as_many_as_rows():
    with pytest.raises(ValueError, match="`sets` must name the set of each of 3 rows, found 2"):
        ebp.Curves("table", SMALL_TABLE).fit(np.zeros(3), np.zeros(3), sets=[1, 2])


def test_locations_of_another_dimension_are_refused(curves):
    with pytest.raises(ValueError, match="`X` must have 1 columns"):
        curves.predict(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="`rule` must be one of mixture, geometric"):
        curves.forecast([0.0], rule="best")


def test_figures_are_drawn(curves):
    import ebp.plot

    axes = ebp.plot.density(curves.forecast([0.0, 0.5, 1.0]), context=([0.0], [0.0]))
    assert axes.get_ylabel() == "x" and len(axes.lines) == 1
    assert ebp.plot.history(curves, "nats").get_xlabel() == "step"
    with pytest.raises(ValueError, match="was not recorded"):
        ebp.plot.history(curves, "nonsense")
    assert ebp.plot.clouds(np.eye(3)).name == "3d"
