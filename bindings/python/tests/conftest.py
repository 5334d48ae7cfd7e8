"""Small data and models, made once; and the command line, where it is built."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

import ebp
from small import ROOT, SMALL_CLOUDS, SMALL_CURVES


@pytest.fixture(scope="session")
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def sets() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(9, 20, 3)).astype(np.float32)


@pytest.fixture(scope="session")
def clouds(sets: np.ndarray) -> ebp.Clouds:
    return ebp.Clouds("shapes", SMALL_CLOUDS, seed=1).fit(sets)


@pytest.fixture(scope="session")
def curves() -> ebp.Curves:
    return ebp.Curves("sines", SMALL_CURVES, seed=1).fit()


@pytest.fixture(scope="session")
def program() -> Callable[..., str]:
    """Runs the command line; these tests are skipped, and say so, where it is not built."""
    named = os.environ.get("EBP_PROGRAM")
    built = [ROOT / "target" / profile / "ebp" for profile in ("release", "debug")]
    found = named or next((str(path) for path in built if path.exists()), None) or shutil.which("ebp")
    if found is None:
        pytest.skip("SKIPPED: the program `ebp` is not built (cargo build --release), nothing to compare with")

    def run(*arguments: object) -> str:
        words = [found, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    return run

# A shell that runs this in the background lets SIGINT be ignored, and programs that are started here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
