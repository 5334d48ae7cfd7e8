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
    same = ["outside", "draws", "effective_draws", "holds", "is_possible", "evaluations", "log_law", "rank", "kl",
            "log_partition", "log_partition_error", "neighbours"]
    for row, one in zip(rows, found, strict=True):
        assert {name: one[name] for name in same} == {name: row[name] for name in same}
        inside = len(one["energies"]) - one["outside"]
        assert one["log_likelihood_inside"] / inside == row["log_likelihood_inside"]
        assert one["log_densities"].min() == pytest.approx(row["worst_log_density"] or -np.inf)


def test_scores_of_codes_are_the_same(run, program, sets, tmp_path):
    np.save(tmp_path / "sets.npy", sets)
    rows = json.loads(program("score", run, tmp_path / "sets.npy", "--codes-only", "--json"))["sets"]
    found = ebp.load(run).code_scores(sets)
    for name in ("log_law", "rank", "kl"):
        assert found[name].tolist() == [row[name] for row in rows], name


def test_clouds_are_cleaned_alike(run, program, sets, tmp_path):
    np.save(tmp_path / "noisy.npy", sets)
    options = ["--noise", 0.1, "--steps", 3, "-q"]
    program("denoise", run, tmp_path / "noisy.npy", "-o", tmp_path / "clean.npy", *options)
    clean = ebp.load(run).denoise(sets, noise=0.1, steps=3)
    assert clean.tobytes() == np.load(tmp_path / "clean.npy").tobytes()


def test_collections_are_the_same(program, sets, tmp_path):
    for name, part in [("samples", sets[:4]), ("references", sets[4:])]:
        np.save(tmp_path / f"{name}.npy", part)
    files = [tmp_path / "samples.npy", tmp_path / "references.npy"]
    printed = json.loads(program("metrics", *files, "--no-cache", "--seed", 3, "--json", "-q"))
    found = ebp.metrics.compare(sets[:4], sets[4:], seed=3)
    for theirs, ours in [("cd", found.chamfer), ("emd", found.emd)]:
        assert list(printed[f"mmd_{theirs}"].values()) == list(ours.matching_distance)
        assert list(printed[f"cov_{theirs}"].values()) == list(ours.coverage)
        assert list(printed[f"nna_{theirs}"].values()) == list(ours.one_nn_accuracy)
    assert list(printed["jsd"].values()) == list(found.divergence)
    assert printed["jsd_outside"] == found.outside


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


@pytest.mark.parametrize(
    ("kind", "preset", "settings"),
    [
        (ebp.Topics, "lda", {"lda.num_topics": 3, "train.num_steps": 5, "data.num_documents": 60}),
        (ebp.Topics, "topics", {"train.num_steps": 3, "data.num_documents": 60}),
        (ebp.Pattern, "poisson", {}),
        (ebp.Pattern, "deepsets", {"data.num_patterns": 2, "interaction.width": 4}),
        (ebp.Clouds, "statistician", {"train.num_steps": 2}),
        (ebp.Pictures, "digits", {"train.num_steps": 2, "data.num_training": 30, "tasks.num_pictures": 4,
                                  "evaluation.num_pictures": 2}),
    ],
)
def test_built_in_data_teach_the_same(kind, preset, settings, program, tmp_path):
    program("train", preset, "--seed", 2, *as_arguments(settings), "--out", tmp_path / "run", "-q")
    model = kind(preset, settings, seed=2, directory=tmp_path / "mine").fit()
    assert state(tmp_path / "mine") == state(tmp_path / "run")
    loaded = ebp.load(tmp_path / "run")
    assert type(loaded) is kind and loaded.settings_text == model.settings_text
    assert loaded._ask.name == model._ask.name


def test_a_run_of_the_package_goes_on_by_the_program(program, tmp_path):
    def enough(progress):
        if 0 < progress.done < progress.total:
            raise KeyError("enough")

    settings = SMALL_CURVES | {"train.num_steps": 300}
    run = ebp.Curves("sines", settings, seed=1, directory=tmp_path / "run", progress=enough)
    with pytest.raises(KeyError, match="enough"):
        run.fit()
    assert 0 < ebp.load(tmp_path / "run")._ask.step < 300
    program("train", tmp_path / "run" / "config.toml", "--resume", "--out", tmp_path / "run", "-q")
    ebp.Curves("sines", settings, seed=1, directory=tmp_path / "whole").fit()
    assert state(tmp_path / "run") == state(tmp_path / "whole")


def test_pictures_are_completed_alike(program, tmp_path):
    image = pytest.importorskip("PIL.Image")
    levels = np.random.default_rng(0).integers(0, 255, (24, 9, 8), dtype=np.uint8)
    small = {"train.num_steps": 2, "data.num_training": 0, "tasks.max_context": 20, "tasks.num_pictures": 4}
    model = ebp.Pictures("digits", small, seed=1).fit(levels)
    model.save(tmp_path / "model")
    # Twice as wide as the model: completed in tiles that overlap.
    wide = np.concatenate([levels[0], levels[1]], axis=1)
    for name, picture in [("own", levels[0]), ("wide", wide)]:
        missing = np.zeros(picture.shape, dtype=bool)
        missing[5:] = True
        image.fromarray(picture).save(tmp_path / f"{name}.png")
        image.fromarray(np.where(missing, 255, 0).astype(np.uint8)).save(tmp_path / "mask.png")
        files = ["--image", tmp_path / f"{name}.png", "--mask", tmp_path / "mask.png", "--out", tmp_path / name]
        program("complete", tmp_path / "model", *files, "-k", 2, "--seed", 5, "-q")
        told: list[ebp.Progress] = []
        model.set_params(progress=told.append)
        found = model.complete(picture, missing, count=2, seed=5)
        for number, ours in enumerate(found, start=1):
            theirs = np.asarray(image.open(tmp_path / name / f"completion-{number}.png").convert("L"))
            np.testing.assert_array_equal(ours, theirs)
        assert all(one.piece == "pixels" and one.total == missing.sum() for one in told)


def test_patterns_are_drawn_alike(program, tmp_path):
    points = np.random.default_rng(0).uniform(size=(60, 2))
    model = ebp.Pattern("strauss", {"interaction.radius": 0.05}, seed=1).fit(points)
    model.save(tmp_path / "model")
    program("sample", tmp_path / "model", "-n", 2, "--seed", 4, "-o", tmp_path / "drawn", "-q")
    for number, ours in enumerate(model.sample(2, seed=4)):
        # Number, title and window, then a line for each point.
        lines = (tmp_path / "drawn" / f"{number:04}.dat").read_text().splitlines()[3:]
        assert ours.tolist() == [[float(x) for x in line.split()] for line in lines]
