#!/usr/bin/env python3
"""Times linear support vector machines of ebp and of scikit-learn on the same features, in turn.

    python3 bench/linear_svm.py [--items 4000] [--features 512,2048] [--costs 1,0.1] [--ebp PATH]

Features are rectified random projections of ten overlapping classes: long rows that are much alike, as
encoders make them. One line per solver: seconds of one core for five folds, the largest duality gap
(P − D)/P (ebp states it; of scikit-learn's machines it is not known), and the accuracy in
cross-validation, each with its own folds. scikit-learn's dual solver gets ten times its usual passes and
says whether that was enough. Needs scikit-learn (tools/reference/requirements.txt).
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import LinearSVC

from compare import build_ebp, positive

CLASSES = 10
FOLDS = 5
# Dimensions in which classes differ, and how far apart they are there.
LATENT, APART = 24, 0.8


def main():
    arguments = parse_arguments()
    binary = arguments.ebp or build_ebp()
    print(f"{arguments.items} items, {CLASSES} classes, {FOLDS} folds, one core; "
          f"scikit-learn {sklearn.__version__}\n")
    print("| features | C | solver | seconds | gap | accuracy % |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for width in arguments.features:
            rows, labels = draw(arguments.items, width)
            for cost in arguments.costs:
                report(width, cost, "ebp", *fit_ebp(binary, pathlib.Path(folder), rows, labels, cost))
                report(width, cost, "LinearSVC(dual=True)", *fit_sklearn(rows, labels, cost, True))
                report(width, cost, "LinearSVC(dual=False)", *fit_sklearn(rows, labels, cost, False))


def parse_arguments():
    def several(kind):
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=positive, default=4000)
    parser.add_argument("--features", type=several(positive), default=[512, 2048], metavar="N,...")
    parser.add_argument("--costs", type=several(float), default=[1.0, 0.1], metavar="C,...")
    parser.add_argument("--ebp", metavar="PATH", help="the ebp binary (default: build it)")
    return parser.parse_args()


def draw(items, width):
    """Classes in LATENT dimensions, projected at random, shifted and rectified."""
    random = np.random.default_rng(1)
    labels = np.arange(items) % CLASSES
    centres = APART * random.standard_normal((CLASSES, LATENT))
    latent = centres[labels] + random.standard_normal((items, LATENT))
    projected = latent @ random.standard_normal((LATENT, width)) / np.sqrt(LATENT)
    return np.maximum(projected + 1.0, 0.0).astype(np.float32), labels


def fit_ebp(binary, folder, rows, labels, cost):
    np.save(folder / "rows.npy", rows)
    np.save(folder / "labels.npy", labels)
    command = [binary, "classify", folder / "rows.npy", "--labels", folder / "labels.npy",
               "--c", str(cost), "--folds", str(FOLDS), "--threads", "1", "--json"]
    start = time.perf_counter()
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    found = json.loads(output.stdout)
    return seconds, f"{found['gap']:.0e}", found["accuracy"]


def fit_sklearn(rows, labels, cost, is_dual):
    machine = LinearSVC(C=cost, dual=is_dual, max_iter=10_000 if is_dual else 1000, random_state=0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = cross_val_score(machine, rows.astype(np.float64), labels, cv=folds)
    seconds = time.perf_counter() - start
    gave_up = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return seconds, "not converged" if gave_up else "–", scores.mean()


def report(width, cost, solver, seconds, gap, accuracy):
    print(f"| {width} | {cost:g} | {solver} | {seconds:.1f} | {gap} | {100 * accuracy:.2f} |", flush=True)


if __name__ == "__main__":
    main()
