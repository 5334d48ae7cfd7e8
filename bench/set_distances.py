#!/usr/bin/env python3
"""Distances between two clouds by ebp and by SciPy and NumPy on the same core, in turn.

    python3 bench/set_distances.py [--points 2048] [--rounds 3] [--shapes chair.npy]

Exact earth mover's distance: SciPy's `cdist` and `linear_sum_assignment`. Chamfer: brute force over
all pairs. Approxmatch: vectorised over all pairs. Each side's least time over the rounds; ebp's
includes arranging both clouds. Clouds are drawn here, `--shapes` adds pairs of an array [sets, points, 3].
Both sides run on one core, the same one where the system allows to choose.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import scipy
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

ROOT = pathlib.Path(__file__).resolve().parent.parent
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", type=pathlib.Path, help="an array [sets, points, 3]")
    parser.add_argument("--pairs", type=int, default=3, help="pairs of shapes")
    parser.add_argument("--binary", type=pathlib.Path, help="the built example; built if left out")
    arguments = parser.parse_args()
    os.environ.update(SINGLE)
    binary = arguments.binary or build()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}, one core, load {os.getloadavg()[0]:.1f}\n")
    print("| clouds | exact, ms | SciPy, ms | ratio | gap | difference | Chamfer, ms | ratio "
          "| approxmatch, ms | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, x, y in clouds(arguments):
            report(name, x, y, arguments.rounds, binary, pathlib.Path(folder))
    print(f"\nload {os.getloadavg()[0]:.1f} at the end")


def build():
    command = ["cargo", "build", "--release", "-p", "ebp", "--example", "set_distances"]
    subprocess.run(command, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "set_distances"


def clouds(arguments):
    n, random = arguments.points, np.random.default_rng(0)
    yield "uniform in a cube", random.random((n, 3)), random.random((n, 3))
    sphere = lambda: (lambda v: v / np.linalg.norm(v, axis=1)[:, None])(random.normal(size=(n, 3)))
    box = lambda: (lambda v, axis: np.where(np.arange(3) == axis[:, None], np.sign(v), v))(
        random.uniform(-0.6, 0.6, (n, 3)), random.integers(0, 3, n))
    yield "surfaces: sphere, cube", sphere(), 0.6 * box()
    x = sphere()
    noisy = lambda scale: (x + scale * random.normal(size=x.shape))[random.permutation(n)]
    yield "copy with noise 0.01", x, noisy(0.01)
    yield "copy with noise 0.001", x, noisy(0.001)
    yield "Gaussians one apart", random.normal(size=(n, 3)), random.normal(size=(n, 3)) + 1
    line = lambda: random.random((n, 1)) * [1, 2, 3]
    yield "on one line", line(), line()
    half = lambda share: np.where(random.random((n, 1)) < share, 1, 0) + 0.01 * random.normal(size=(n, 3))
    yield "two clusters, 35 and 65 %", half(0.35), half(0.65)
    if arguments.shapes:
        shapes = np.load(arguments.shapes, mmap_mode="r")
        for _ in range(arguments.pairs):
            a, b = random.choice(len(shapes), 2, replace=False)
            yield f"{arguments.shapes.stem} {a}, {b}", np.array(shapes[a][:n]), np.array(shapes[b][:n])


def report(name, x, y, rounds, binary, folder):
    x, y = x.astype(np.float32), y.astype(np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    x, y = x.astype(np.float64), y.astype(np.float64)
    ours, theirs = {}, {}
    for _ in range(rounds):
        command = [str(binary), str(folder / "x.npy"), str(folder / "y.npy"), "2"]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        ours = {k: min(v, ours.get(k, v)) if k.endswith("seconds") else v for k, v in result.items()}
        for function in (exact, chamfer, approxmatch):
            clock = time.perf_counter()
            value = function(x, y)
            seconds = time.perf_counter() - clock
            before = theirs.get(function.__name__, (value, seconds))
            theirs[function.__name__] = (value, min(seconds, before[1]))
    cell = lambda key: (f"{1e3 * ours[key + '_seconds']:.2f} | "
                        f"{theirs[key][1] / ours[key + '_seconds']:.1f}")
    exact_ratio = theirs["exact"][1] / ours["exact_seconds"]
    print(f"| {name} | {1e3 * ours['exact_seconds']:.1f} | {1e3 * theirs['exact'][1]:.1f} | "
          f"{exact_ratio:.1f} | {ours['gap']:.0e} | {abs(ours['exact'] / theirs['exact'][0] - 1):.0e} | "
          f"{cell('chamfer')} | {cell('approxmatch')} |", flush=True)


def exact(x, y):
    cost = cdist(x, y)
    rows, columns = linear_sum_assignment(cost)
    return cost[rows, columns].mean()


def chamfer(x, y):
    d2 = ((x[:, None] - y[None]) ** 2).sum(-1)
    return d2.min(1).mean() + d2.min(0).mean()


def approxmatch(x, y):
    n, m = len(x), len(y)
    largest = max(n, m)
    d2 = np.maximum((x**2).sum(1)[:, None] + (y**2).sum(1)[None] - 2 * x @ y.T, 0)
    left, right, match = np.full(n, largest / n), np.full(m, largest / m), np.zeros((n, m))
    for j in range(7, -2, -1):
        kernel = np.exp(-(4.0**j) * d2)
        row = left / (1e-9 + kernel @ right)
        taken = (row @ kernel) * right
        column = np.minimum(right / (taken + 1e-9), 1) * right
        right = np.maximum(0, right - taken)
        weight = kernel * row[:, None] * column[None]
        match += weight
        left = np.maximum(0, left - weight.sum(1))
    return (match * np.sqrt(d2)).sum() / largest


if __name__ == "__main__":
    main()
