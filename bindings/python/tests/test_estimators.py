"""scikit-learn's manners: parameters, clones, pickles, regressors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from small import SMALL_CLOUDS
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import ebp

CLASSES = [ebp.Clouds, ebp.Curves, ebp.Pictures, ebp.Topics, ebp.Pattern]


@pytest.mark.parametrize("kind", CLASSES)
def test_parameters_are_those_of_the_constructor(kind):
    model = kind(settings={"train.num_steps": 7}, seed=3)
    assert model.get_params()["seed"] == 3 and model.set_params(seed=4).seed == 4
    with pytest.raises(ValueError, match="has no parameter `sead`"):
        model.set_params(sead=4)
    twin = clone(model)
    assert twin is not model and twin.get_params() == model.get_params()
    assert repr(model) == f"{kind.__name__}(settings={{'train.num_steps': 7}}, seed=4)"
    assert "num_steps = 7" in model.settings_text and "not yet" in model._repr_html_()


@pytest.mark.parametrize("kind", CLASSES)
def test_models_must_be_fitted_first(kind):
    with pytest.raises(ebp.errors.NotFittedError, match="has not been fitted yet"):
        kind().save("/nowhere")
    with pytest.raises(AttributeError):
        kind()._ask  # noqa: B018


def test_settings_are_the_words_of_the_command_line():
    as_list = ebp.Clouds("shapes", ["train.num_steps=7", "model.energy_widths=[3, 4]"])
    as_mapping = ebp.Clouds("shapes", {"train.num_steps": 7, "model.energy_widths": (3, 4)})
    assert as_list.settings_text == as_mapping.settings_text
    with pytest.raises(ValueError, match="did you mean `train.num_steps`"):
        ebp.Clouds("shapes", {"train.num_step": 7}).fit()
    with pytest.raises(ValueError, match="there is no preset `shape`"):
        ebp.Clouds("shape").fit()
    with pytest.raises(ValueError, match="is for curves, Clouds takes"):
        ebp.Clouds("sines").fit()
    with pytest.raises(ValueError, match="a setting must be"):
        ebp.Clouds("shapes", {"train.num_steps": None}).fit()


def test_presets_are_listed_by_kind():
    assert {"shapes", "cloud"} <= set(ebp.presets("clouds")) and "sines" in ebp.presets()


def test_pickles_answer_alike(clouds, curves, sets):
    for copied in (pickle.loads(pickle.dumps(clouds)), copy.deepcopy(clouds)):
        assert copied.sample(2, points=9).tobytes() == clouds.sample(2, points=9).tobytes()
        # A second generation has its own files.
        assert pickle.loads(pickle.dumps(copied)).transform(sets).tobytes() == clouds.transform(sets).tobytes()
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(curves)).predict([0.1]), curves.predict([0.1])
    )
    assert pickle.loads(pickle.dumps(ebp.Clouds(seed=9))).seed == 9


def test_pages_of_models_are_tables(clouds):
    page = clouds._repr_html_()
    assert "importance" in page and "latent_dim" in page and "<table>" in page


def test_devices_and_precisions_are_checked(sets):
    for field, value, words in [
        ("device", "gpu", "auto, cpu, cuda or cuda:N, found `gpu`"),
        ("precision", "f16", "f32, tf32 or bf16, found `f16`"),
        ("threads", 0, "from 1 to 1024, found 0"),
        ("progress", 3, "True, a function or None"),
    ]:
        with pytest.raises(ValueError, match=words):
            ebp.Clouds("shapes", SMALL_CLOUDS, **{field: value}).fit(sets)


def test_a_missing_gpu_says_so(sets):
    try:
        ebp.Clouds("shapes", SMALL_CLOUDS, device="cuda:7").fit(sets)
    except ebp.errors.DeviceError as error:
        assert "cannot" in str(error) and isinstance(error, RuntimeError)
    else:
        pytest.skip("SKIPPED: this machine has eight GPUs")


def test_a_folder_without_a_model_says_so(tmp_path):
    with pytest.raises(ValueError, match="there is no model in .*\nhelp: give the folder of a run"):
        ebp.load(tmp_path)


def test_only_numpy_is_imported():
    code = "import sys, ebp; print([m for m in ('pandas', 'sklearn', 'matplotlib', 'tqdm', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_regressors_work_without_scikit_learn():
    code = """
import sys; sys.modules["sklearn"] = None
import numpy as np, ebp
t = np.linspace(0, 6, 30)[:, None]
model = ebp.GaussianProcessRegressor().fit(t, np.sin(t[:, 0]))
print(round(model.score(t, np.sin(t[:, 0])), 3), model.set_params(seed=3).get_params()["seed"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1.0", "3"], done.stderr


REGRESSORS = [ebp.GaussianProcessRegressor(), ebp.StudentTProcessRegressor()]
EXPECTED_FAILURES: dict[str, str] = {}


@parametrize_with_checks(REGRESSORS, expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_takes_the_regressors(estimator, check):
    check(estimator)


def test_the_checks_of_scikit_learn_are_many():
    assert sum(1 for _ in estimator_checks_generator(REGRESSORS[0], legacy=True)) > 40


def test_a_gaussian_process_is_that_of_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rng = np.random.default_rng(0)
    X, at = rng.uniform(0, 5, (40, 2)), rng.uniform(0, 5, (9, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    ours = ebp.GaussianProcessRegressor(
        length_scale=1.3, signal_variance=2.0, noise_variance=0.1, standardise=False, max_evaluations=0
    ).fit(X, y)
    kernel = ConstantKernel(2.0) * RBF(1.3) + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    mean, std = ours.predict(at, return_std=True)
    expected_mean, expected_std = theirs.predict(at, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-7)
    np.testing.assert_allclose(std, expected_std, rtol=1e-6)
    np.testing.assert_allclose(
        ours.log_marginal_likelihood_, theirs.log_marginal_likelihood(theirs.kernel_.theta), rtol=1e-8
    )


@pytest.mark.parametrize("kernel", ["rbf", "rbf-ard", "matern12", "matern32 + linear", "periodic * rbf + constant"])
def test_kernels_by_name(kernel):
    X = np.random.default_rng(0).uniform(0, 5, (30, 2))
    model = ebp.GaussianProcessRegressor(kernel, max_evaluations=20).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) > 0.5 and "noise_variance" in model.hyperparameters_


def test_unknown_kernels_are_refused():
    with pytest.raises(ValueError, match="`kernel` must be rbf.*found `rbg`"):
        ebp.GaussianProcessRegressor("rbg").fit(np.zeros((3, 1)), np.arange(3.0))


def test_regressors_draw_score_and_validate():
    X = np.linspace(0, 6, 50)[:, None]
    y = np.sin(X[:, 0])
    for model in (ebp.GaussianProcessRegressor("matern52"), ebp.StudentTProcessRegressor(seed=2)):
        model.fit(X, y)
        assert model.sample(X[:5], 4, seed=1).shape == (4, 5)
        assert model.log_density(X[:5], y[:5]).shape == (5,)
        assert "log marginal" in model._repr_html_() and "fitted length_scale" in model._repr_html_()
        assert cross_val_score(model, X, y, cv=3).shape == (3,)
    assert model.hyperparameters_["degrees_of_freedom"] > 2


def test_outputs_may_be_several():
    X = np.linspace(0, 6, 30)[:, None]
    Y = np.stack([np.sin(X[:, 0]), np.cos(X[:, 0])], axis=1)
    model = ebp.GaussianProcessRegressor().fit(X, Y)
    mean, std = model.predict(X[:4], return_std=True)
    assert mean.shape == std.shape == (4, 2) and model.sample(X[:4], 3).shape == (3, 4, 2)
