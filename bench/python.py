"""Times the Python package beside the program: distances of 2,048 points, all pairs, a training.

    python bench/python.py [--program target/release/ebp] [--rounds 7]

Both sides take turns in one sitting. A distance by the program is the time of the whole command; one by
the package is that of the call. Of a training it is the seconds of its steps, which both keep.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ebp


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def show(name: str, package: list[float], program: list[float], unit: str = "ms") -> None:
    scale = 1e3 if unit == "ms" else 1.0
    ours, theirs = statistics.median(package), statistics.median(program)
    print(
        f"{name:34} package {scale * ours:9.2f} {unit}  program {scale * theirs:9.2f} {unit}  "
        f"ratio {ours / theirs:.3f}  least {min(package) / min(program):.3f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/ebp")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--skip-fit", action="store_true", help="leave the trainings out")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pair = rng.normal(size=(2, 2048, 3)).astype(np.float32)
        for letter, cloud in zip("ab", pair):
            np.save(folder / f"{letter}.npy", cloud)

        def program(*words: object) -> str:
            run = [options.program, *map(str, words)]
            return subprocess.run(run, check=True, capture_output=True, text=True).stdout

        for title, emd, call in [
            ("chamfer, 2048 points", "off", lambda: ebp.metrics.chamfer(*pair)),
            ("chamfer and exact emd, 2048 points", "exact",
             lambda: (ebp.metrics.chamfer(*pair), ebp.metrics.emd(*pair))),
        ]:
            command = ["distance", folder / "a.npy", folder / "b.npy", "--emd", emd, "--json"]
            ours, theirs = [], []
            for _ in range(options.rounds):
                theirs.append(seconds(lambda: program(*command)))
                ours.append(seconds(call))
            show(title, ours, theirs)
            printed = json.loads(program(*command))
            assert printed["chamfer"]["value"] == ebp.metrics.chamfer(*pair)

        sets = rng.normal(size=(2, 100, 2048, 3)).astype(np.float32)
        spent = seconds(lambda: ebp.metrics.pairwise(sets[0], sets[1]))
        print(f"chamfer of 100 x 100 pairs of 2048 points in one call: {spent:.2f} s, {spent / 10:.3f} ms a pair")
        small = sets[:, :, :256]
        spent = seconds(lambda: ebp.metrics.pairwise(small[0], small[1], "exact"))
        print(f"exact emd of 100 x 100 pairs of 256 points in one call: {spent:.2f} s, {spent / 10:.3f} ms a pair")

        if options.skip_fit:
            return
        ours, theirs = [], []
        for number in range(options.rounds):
            run = folder / f"run-{number}"
            program("train", "sines", "--out", run, "-q")
            theirs.append(float(ebp.load(run)._ask.seconds))
            model = ebp.Curves("sines", directory=folder / f"mine-{number}").fit()
            ours.append(float(model._ask.seconds))
        show("fit of sines, 1200 steps", ours, theirs, "s")


if __name__ == "__main__":
    main()
