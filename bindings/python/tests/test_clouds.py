"""Clouds: from arrays, lists and frames to draws, scores, features and files."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from small import SMALL_CLOUDS

import ebp

FEW = {"draws": 4, "most_draws": 4, "proposals": 300}


def test_draws_have_shape_type_and_picture(clouds):
    drawn = clouds.sample(2, points=40, seed=7)
    assert drawn.shape == (2, 40, 3) and drawn.dtype == np.float32 and np.isfinite(drawn).all()
    assert drawn.report["prior"] == "kernel" and drawn.report["effective_proposals"] > 1
    assert "data:image/png;base64" in drawn._repr_html_()
    assert "data:image/png" in drawn[0]._repr_html_() and drawn[0, 0]._repr_html_() is None


def test_the_same_seed_gives_the_same_bytes(clouds):
    first = clouds.sample(2, points=20, seed=7)
    assert first.tobytes() == clouds.sample(2, points=20, seed=7).tobytes()
    assert first.tobytes() != clouds.sample(2, points=20, seed=8).tobytes()


def test_arrays_lists_and_frames_teach_the_same(clouds, sets):
    expected = clouds.transform(sets)
    frame = pd.DataFrame(sets.reshape(-1, 3), columns=["x", "y", "z"])
    frame["set"] = np.repeat([f"s{n}" for n in range(len(sets))], sets.shape[1])
    for data in (list(sets), sets.astype(np.float64), np.asfortranarray(sets), frame):
        model = ebp.Clouds("shapes", SMALL_CLOUDS, seed=1).fit(data)
        np.testing.assert_array_equal(model.transform(sets), expected)


def test_threads_do_not_change_training(clouds, sets):
    one = ebp.Clouds("shapes", SMALL_CLOUDS, seed=1, threads=1).fit(sets)
    assert one.transform(sets).tobytes() == clouds.transform(sets).tobytes()


def test_ragged_sets_are_scored(clouds, rng):
    ragged = [rng.normal(size=(n, 3)) for n in (5, 12, 1)]
    found = clouds.score_samples(ragged, **FEW)
    assert found.shape == (3,) and found.dtype == np.float64
    details = clouds.score_details(ragged, **FEW)
    assert [len(one["energies"]) for one in details] == [5, 12, 1]
    assert [one["log_likelihood"] for one in details] == found.tolist()
    assert np.isfinite(clouds.score(ragged, **FEW)) or np.isneginf(clouds.score(ragged, **FEW))


def test_strange_sets_have_a_low_rank(clouds, sets):
    found = clouds.code_scores(np.concatenate([sets, 40 * sets[:1]]))
    assert all(found[name].shape == (10,) for name in ("log_law", "rank", "kl"))
    assert ((found["rank"] >= 0) & (found["rank"] <= 1)).all() and (found["kl"] >= 0).all()
    # No training set is as far out as one that is forty times as large.
    assert found["log_law"][-1] < found["log_law"][:-1].min()
    details = clouds.score_details(sets[:2], **FEW)
    # Codes are of single precision, and sums over a batch of another size are rounded otherwise.
    assert [one["log_law"] for one in details] == pytest.approx(found["log_law"][:2], rel=1e-5)
    assert [one["rank"] for one in details] == found["rank"][:2].tolist()


def test_scores_say_how_they_were_found(clouds, sets):
    (one,) = clouds.score_details(sets[:1], **FEW)
    assert one["draws"] == 4 and 1 <= one["effective_draws"] <= 4 and isinstance(one["holds"], bool)
    assert one["evaluations"] > 0 and one["log_partition_error"] >= 0
    assert len(one["log_densities"]) == 20 and one["outside"] == 0


def test_scores_are_a_table_in_notebooks(clouds, rng):
    records = clouds.score_details(rng.normal(size=(21, 5, 3)), draws=0, proposals=100)
    page = records._repr_html_()
    assert page.count("<tr>") == 1 + 20 and page.endswith("and 1 more sets")
    # Numbers of a set are columns, those of its points are not.
    assert "<th>log_likelihood</th>" in page and "energies" not in page
    assert clouds.score_details([[[0.0, 0.0, 0.0]]], draws=0, proposals=100)._repr_html_().endswith("</table>")


def test_features_by_name(clouds, sets):
    assert clouds.transform(sets).shape == (9, 12)
    assert clouds.transform(sets, features="mean").shape == (9, 3)
    with pytest.raises(ValueError, match="`features` must be"):
        clouds.transform(sets, features="best")


def test_codes_take_the_place_of_the_prior(clouds, sets):
    codes = clouds.transform(sets[:2], features="mean")
    assert clouds.sample(points=10, codes=codes).shape == (2, 10, 3)
    with pytest.raises(ValueError):
        clouds.sample(points=10, codes=codes[:, :2])


def test_cleaned_clouds_keep_their_form(clouds, sets):
    assert clouds.denoise(sets[0], noise=0.1).shape == (20, 3)
    assert clouds.denoise(sets[:2], steps=3).shape == (2, 20, 3)
    assert [len(one) for one in clouds.denoise([sets[0], sets[1, :5]])] == [20, 5]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([], "at least one set"),
        ([np.zeros((0, 3))], "empty"),
        ([np.zeros((4, 3)), np.zeros((4, 2))], "3 columns as set 0, found 2 in set 1"),
        ([[[0.0, np.nan, 0.0]] * 20] * 9, "finite"),
        ("chair", "must be clouds"),
        (np.zeros((9, 20, 3), dtype=complex), "real numbers"),
        (np.zeros(5), r"array \[n, d\]"),
    ],
)
def test_what_is_no_collection_of_clouds_is_refused(bad, words):
    with pytest.raises(ValueError, match=words):
        ebp.Clouds("shapes", SMALL_CLOUDS).fit(bad)


def test_too_few_sets_are_refused(sets):
    with pytest.raises(ebp.InvalidInputError):
        ebp.Clouds("shapes", SMALL_CLOUDS).fit(sets[:1])


def test_points_of_another_dimension_are_refused(clouds):
    for ask in (clouds.transform, clouds.score_samples, clouds.denoise):
        with pytest.raises(ValueError, match="3"):
            ask(np.zeros((2, 5, 2)))


def test_wrong_choices_name_what_is_known(clouds):
    with pytest.raises(ValueError, match="`prior` must be one of kernel, flow, gaussian, standard"):
        clouds.sample(1, prior="best")
    with pytest.raises(ValueError, match="`count` and `points` must be at least 1"):
        clouds.sample(0)
    with pytest.raises(ValueError, match="`start` must be one of"):
        clouds.sample(1, start="best")


def test_saved_models_answer_alike(clouds, sets, tmp_path):
    saved = clouds.save(tmp_path / "model")
    assert "codes.npy" in saved["files"] and saved["bytes"] > 0
    loaded = ebp.load(tmp_path / "model")
    assert isinstance(loaded, ebp.Clouds)
    assert loaded.sample(2, points=9).tobytes() == clouds.sample(2, points=9).tobytes()
    with pytest.raises(ValueError, match="found files in it"):
        clouds.save(tmp_path / "model")


def test_saved_models_are_what_hubs_read(clouds, tmp_path):
    clouds.save(tmp_path / "model")
    (weights,) = (tmp_path / "model").rglob("*.safetensors")
    content = weights.read_bytes()
    length = int.from_bytes(content[:8], "little")
    # Texts alone, and the format without which readers of hubs refuse a file; tensors begin at a multiple of eight.
    assert json.loads(content[8 : 8 + length])["__metadata__"] == {"format": "pt"} and length % 8 == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: ebp\ntags:\n- energy-based-process\n- clouds\n- importance\n---\n")


def test_history_and_progress_are_told(sets):
    told = []
    model = ebp.Clouds("shapes", SMALL_CLOUDS | {"train.record_every": 1}, progress=told.append).fit(sets)
    assert [step["step"] for step in model.history_] == [1, 2, 3, 4]
    assert "nats" in model.history_[0] and told[-1].total == 4 and told[-1].piece == "training"


def test_a_bar_of_tqdm_is_drawn(sets, capfd):
    ebp.Clouds("shapes", SMALL_CLOUDS | {"train.num_steps": 8000}, progress=True).fit(sets)
    drawn = capfd.readouterr().err
    # One bar is one line, drawn again and again.
    assert "8000/8000" in drawn and drawn.count("\n") == 1 and drawn.count("\r") > 2


def test_an_error_of_the_callback_ends_the_work(sets):
    def broken(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ebp.Clouds("shapes", SMALL_CLOUDS | {"train.num_steps": 100_000}, progress=broken).fit(sets)


def test_the_judge_reports(sets):
    model = ebp.Clouds("shapes", SMALL_CLOUDS).fit(sets, judge=True)
    assert "1-NNA" in model.report_ or "nats" in model.report_


def test_a_run_goes_on_where_it_was(sets, tmp_path):
    def enough(progress):
        if 0 < progress.done < progress.total:
            raise KeyError("enough")

    longer = SMALL_CLOUDS | {"train.num_steps": 8000}
    run = ebp.Clouds("shapes", longer, seed=1, directory=tmp_path / "run", progress=enough)
    with pytest.raises(KeyError, match="enough"):
        run.fit(sets)
    assert 0 < ebp.load(tmp_path / "run")._ask.step < 8000
    run.set_params(progress=None)
    with pytest.raises(ValueError, match="must be empty or new"):
        run.fit(sets)
    whole = ebp.Clouds("shapes", longer, seed=1).fit(sets)
    assert run.fit(sets, resume=True).transform(sets).tobytes() == whole.transform(sets).tobytes()


def test_energies_of_whole_sets_are_clouds_too(rng):
    few = {"train.num_steps": 2, "data.num_training": 6, "data.set_size": 5, "data.sizes": "fixed"}
    model = ebp.Clouds("sticks", few).fit(rng.normal(size=(9, 12, 2)))
    assert model.sample(3, points=5).shape == (3, 5, 2)
    with pytest.raises(ValueError, match="model of set-energies"):
        model.denoise(np.zeros((3, 2)))


def test_nothing_warns_where_nothing_is_wrong(sets):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ebp.Clouds("shapes", SMALL_CLOUDS).fit(sets)


def test_a_damaged_checkpoint_is_a_warning(sets, tmp_path):
    often = SMALL_CLOUDS | {"train.num_steps": 6, "train.checkpoint_every": 2, "train.num_kept": 3}
    run = ebp.Clouds("shapes", often, seed=1, directory=tmp_path / "run").fit(sets)
    newest = sorted((tmp_path / "run" / "checkpoints").glob("step-*"))[-1] / "state.safetensors"
    newest.write_bytes(newest.read_bytes()[:-7])
    with pytest.warns(ebp.EbpWarning, match="set aside"):
        again = run.fit(sets, resume=True)
    whole = ebp.Clouds("shapes", often, seed=1).fit(sets)
    assert again.transform(sets).tobytes() == whole.transform(sets).tobytes()
