"""The command line and the package are one: what one trains the other asks, with the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import ROOT, SMALL_CLOUDS, SMALL_CURVES, as_arguments

import ebp


def state(folder: Path) -> bytes:
    return sorted(Path(folder, "checkpoints").glob("step-*"))[-1].joinpath("state.safetensors").read_bytes()


@pytest.fixture(scope="module")
def run(program, tmp_path_factory, sets) -> Path:
    folder = tmp_path_factory.mktemp("program")
    np.save(folder / "sets.npy", sets)
    changes = as_arguments(SMALL_CLOUDS)
    program("train", "shapes", "--data", folder / "sets.npy", "--seed", 1, *changes, "--out", folder / "run", "-q")
    return folder / "run"


def test_training_is_the_same_to_the_last_bit(run, sets, tmp_path):
    ebp.Clouds("shapes", SMALL_CLOUDS, seed=1, directory=tmp_path / "run").fit(sets)
    assert state(tmp_path / "run") == state(run)


def test_a_model_of_the_program_draws_the_programs_bytes(run, program, tmp_path):
    program("sample", run, "-n", 3, "--points", 30, "--seed", 5, "-o", tmp_path / "drawn.npy", "-q")
    drawn = ebp.load(run).sample(3, points=30, seed=5)
    assert drawn.tobytes() == np.load(tmp_path / "drawn.npy").tobytes()


def test_a_model_of_the_package_draws_the_packages_bytes(clouds, program, tmp_path):
    clouds.save(tmp_path / "model")
    program("sample", tmp_path / "model", "-n", 2, "--points", 9, "-o", tmp_path / "drawn.npy", "-q")
    assert clouds.sample(2, points=9).tobytes() == np.load(tmp_path / "drawn.npy").tobytes()


def test_features_are_the_same(run, program, sets, tmp_path):
    np.save(tmp_path / "sets.npy", sets)
    program("encode", run, tmp_path / "sets.npy", "-o", tmp_path / "features.npy", "-q")
    assert ebp.load(run).transform(sets).tobytes() == np.load(tmp_path / "features.npy").tobytes()


def test_scores_are_the_same(run, program, sets, tmp_path):
    np.save(tmp_path / "sets.npy", sets[:2])
    options = ["--draws", 4, "--most-draws", 4, "--proposals", 300, "--json"]
    rows = json.loads(program("score", run, tmp_path / "sets.npy", *options))["sets"]
    found = ebp.load(run).score_details(sets[:2], draws=4, most_draws=4, proposals=300)
    for row, one in zip(rows, found):
        assert one["log_likelihood_inside"] / (len(one["energies"]) - one["outside"]) == pytest.approx(
            row["log_likelihood_inside"], rel=1e-12
        )


def test_curves_are_the_same(program, tmp_path):
    frame = pd.DataFrame({"t": np.linspace(-1, 1, 80), "x": np.sin(np.linspace(-3, 3, 80))})
    frame.to_csv(tmp_path / "table.csv", index=False)
    changes = as_arguments(SMALL_CURVES)
    program("train", "table", "--data", tmp_path / "table.csv", "--seed", 1, *changes, "--out", tmp_path / "run", "-q")
    model = ebp.Curves("table", SMALL_CURVES, seed=1, directory=tmp_path / "mine").fit(frame)
    assert state(tmp_path / "mine") == state(tmp_path / "run")
    frame[:5].to_csv(tmp_path / "context.csv", index=False)
    frame[5:9].to_csv(tmp_path / "at.csv", index=False)
    tables = ["--context", tmp_path / "context.csv", "--at", tmp_path / "at.csv", "--seed", 3, "--json"]
    printed = json.loads(program("predict", tmp_path / "run", *tables))["sets"][0]
    found = model.forecast(frame[5:9], context=frame[:5], seed=3)
    assert found.values.tolist() == printed["values"] and found.samples.tolist() == printed["samples"]
    assert found.density.tolist() == [place["density"] for place in printed["locations"]]
    assert found.log_density.tolist() == [target["log_density"] for target in printed["targets"]]


def test_distances_are_the_same(program, sets, tmp_path):
    for name, cloud in zip("ab", sets):
        np.save(tmp_path / f"{name}.npy", cloud)
    printed = json.loads(program("distance", tmp_path / "a.npy", tmp_path / "b.npy", "--json"))
    assert ebp.metrics.chamfer(sets[0], sets[1]) == printed["chamfer"]["value"]
    found = ebp.metrics.emd(sets[0], sets[1])
    assert (found.value, found.gap) == (printed["emd"]["value"], printed["emd"]["gap"])


def test_the_committed_chairs_answer_alike(program, tmp_path):
    chairs = ROOT / "models" / "chairs"
    program("sample", chairs, "-n", 2, "--points", 64, "--seed", 1, "-o", tmp_path / "drawn.npy", "--picture",
            tmp_path / "drawn.png", "-q")
    drawn = ebp.load(chairs).sample(2, points=64, seed=1)
    assert drawn.shape == (2, 64, 3) and drawn.tobytes() == np.load(tmp_path / "drawn.npy").tobytes()
