#!/usr/bin/env python3
"""Times fits of Gaussian processes by ebp and by scikit-learn on the same data, in turn.

    python3 bench/gaussian_process.py [--size 2000] [--evaluations 10] [--rounds 3]

Both sides compute log p and its gradient for the same kernel, from the same start: first a fixed
number of evaluations (seconds per evaluation, the best round of each), then a fit to convergence
by each one's own L-BFGS. Differences of log p are taken at equal hyperparameters: at the start and
where ebp's fit ended. Needs scikit-learn (tools/reference/requirements.txt) and a Rust toolchain.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOUNDS = (1e-5, 1e5)
# The kernels of the example, at its start.
KERNELS = {
    "rbf": lambda: ConstantKernel(1.0, BOUNDS) * RBF(1.0, BOUNDS) + WhiteKernel(0.1, BOUNDS),
    "matern-5/2": lambda: ConstantKernel(1.0, BOUNDS) * Matern(1.0, BOUNDS, nu=2.5)
    + WhiteKernel(0.1, BOUNDS),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--evaluations", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--binary", type=pathlib.Path, help="the built example; built if left out")
    arguments = parser.parse_args()
    print(f"scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
          f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    binary = arguments.binary or build()
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "data.csv"
        ours, theirs = {}, {}
        for _ in range(arguments.rounds):
            for result in run(binary, arguments, data):
                keep_best(ours, result["kernel"], result)
            t, x = np.loadtxt(data, delimiter=",", skiprows=1, unpack=True)
            for name in KERNELS:
                keep_best(theirs, name, fit(name, t[:, None], x, arguments.evaluations))
        for name in KERNELS:
            report(name, arguments.size, ours[name], theirs[name], t[:, None], x)


def build():
    command = ["cargo", "build", "--release", "-p", "ebp", "--example", "gaussian_process"]
    subprocess.run(command, cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "gaussian_process"


def run(binary, arguments, data):
    command = [str(binary), str(arguments.size), str(arguments.evaluations), str(data)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def keep_best(table, name, result):
    """Least seconds over rounds; everything else is the same in every round."""
    best = table.setdefault(name, result)
    for field in ("seconds_per_evaluation", "seconds"):
        best[field] = min(best[field], result[field])


def fit(name, t, x, evaluations):
    """A fixed number of evaluations, then a fit to convergence."""
    timing = {}

    def fixed(objective, start, bounds):
        clock = time.perf_counter()
        for number in range(evaluations):
            # The cost does not depend on the hyperparameters; move them so that nothing is cached.
            value, _ = objective(start + 0.01 * number, eval_gradient=True)
        timing["seconds_per_evaluation"] = (time.perf_counter() - clock) / max(evaluations, 1)
        return start, value

    GaussianProcessRegressor(KERNELS[name](), alpha=0.0, optimizer=fixed).fit(t, x)
    count = 0
    process = GaussianProcessRegressor(KERNELS[name](), alpha=0.0)
    original = process.log_marginal_likelihood

    def counted(*positional, **named):
        nonlocal count
        count += 1
        return original(*positional, **named)

    process.log_marginal_likelihood = counted
    clock = time.perf_counter()
    process.fit(t, x)
    timing["seconds"] = time.perf_counter() - clock
    # fit asks for log p once more at the end.
    timing["evaluations"] = count - 1
    timing["log_marginal"] = process.log_marginal_likelihood_value_
    return timing


def report(name, size, ours, theirs, t, x):
    process = GaussianProcessRegressor(KERNELS[name](), alpha=0.0, optimizer=None).fit(t, x)
    start, gradient = process.log_marginal_likelihood(ours["start"], eval_gradient=True)
    fitted = process.log_marginal_likelihood(ours["fitted"])
    ratio = theirs["seconds_per_evaluation"] / ours["seconds_per_evaluation"]
    print(f"\n{name}, n = {size}")
    print(f"  one evaluation     ebp {ours['seconds_per_evaluation']:.3f} s, "
          f"scikit-learn {theirs['seconds_per_evaluation']:.3f} s: {ratio:.1f} times as fast")
    print(f"  fit to convergence ebp {ours['seconds']:.2f} s ({ours['evaluations']} evaluations, "
          f"{ours['stop']}), scikit-learn {theirs['seconds']:.2f} s "
          f"({theirs['evaluations']} evaluations): {theirs['seconds'] / ours['seconds']:.1f} times")
    print(f"  log p reached      ebp {ours['log_marginal']:.9f}, "
          f"scikit-learn {theirs['log_marginal']:.9f}")
    print(f"  at equal parameters: difference of log p {ours['log_marginal_at_start'] - start:.1e} "
          f"at the start, {ours['log_marginal'] - fitted:.1e} at ebp's optimum; of the gradient "
          f"{np.max(np.abs(np.array(ours['gradient_at_start']) - gradient)):.1e}")


if __name__ == "__main__":
    main()
