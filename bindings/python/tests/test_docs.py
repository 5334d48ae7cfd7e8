"""The two scripts of the guide run, and the guide shows them as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small import ROOT

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, *arguments: object, folder: Path) -> str:
    words = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_frame_becomes_a_density(tmp_path):
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 400)
    x = np.sin(4 * t) * rng.choice([-1, 1], 400) + 0.1 * rng.normal(size=400)
    rows = [f"{number // 20},{a},{b}" for number, (a, b) in enumerate(zip(t, x))]
    (tmp_path / "table.csv").write_text("set,t,x\n" + "\n".join(rows) + "\n")
    assert "bytes" in run("density.py", "table.csv", tmp_path, folder=tmp_path)
    assert (tmp_path / "density.png").stat().st_size > 5000
    assert (tmp_path / "model" / "config.toml").is_file()


def test_chairs_are_generated_and_measured(tmp_path):
    printed = run("chairs.py", ROOT / "models" / "chairs", folder=tmp_path)
    assert "1-NNA" in printed and "gap" in printed
    assert (tmp_path / "chairs.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("name", ["density.py", "chairs.py"])
def test_the_guide_shows_the_scripts(name):
    script = (EXAMPLES / name).read_text()
    assert script in (ROOT / "docs" / "python.md").read_text()
    assert len(script.splitlines()) <= 15
