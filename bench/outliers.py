#!/usr/bin/env python3
"""Which number of `ebp score` tells strange shapes from chairs? Areas under the curve.

    python3 bench/outliers.py --modelnet modelnet10/ --princeton psb/ [--laplace]

Known: the chairs of modelnet10/chair.npy that models/chairs did not learn from (their codes are not in
models/chairs/codes.npy). Strange: twelve shapes of each other class, evenly from the file, and a hundred
shapes of the Princeton Shape Benchmark that are no furniture, evenly from the list. The model has seen none
of them. Needs numpy. --laplace adds the likelihood of all points, at θ = μ and with θ integrated out by Laplace's
approximation (--draws 0), and says how many values the sets' own nearest neighbours rule out.
"""

import argparse
import csv
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np


def evenly(count, wanted):
    return np.arange(wanted) * count // wanted


def area(known, strange):
    """The share of pairs in which the known set has the larger number; ties count half."""
    known, strange = np.asarray(known)[:, None], np.asarray(strange)[None, :]
    return float(np.mean((known > strange) + 0.5 * (known == strange)))


def half_width(known, strange, rounds=1000):
    """Half of a 95 % interval of the area, over both kinds of sets."""
    rng = np.random.default_rng(1)
    draws = [area(rng.choice(known, len(known)), rng.choice(strange, len(strange))) for _ in range(rounds)]
    return float(np.diff(np.quantile(draws, [0.025, 0.975]))[0] / 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ebp", default="target/release/ebp")
    parser.add_argument("--model", type=Path, default=Path("models/chairs"))
    parser.add_argument("--modelnet", type=Path, required=True)
    parser.add_argument("--princeton", type=Path, required=True)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--laplace", action="store_true")
    options = parser.parse_args()

    def ebp(*arguments):
        command = [options.ebp, *map(str, arguments), "--threads", options.threads, "-q"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        chairs = np.load(options.modelnet / "chair.npy").astype("f4")
        np.save(folder / "chairs.npy", chairs)
        ebp("encode", options.model, folder / "chairs.npy", "--features", "mean", "-o", folder / "codes.npy")
        codes = np.load(folder / "codes.npy")
        learned = np.load(options.model / "codes.npy")[0]
        apart = np.array([np.abs(learned - code).max(axis=1).min() for code in codes])
        is_known = apart > 0.05
        classes = sorted(p for p in options.modelnet.glob("*.npy") if p.stem != "chair")
        others = [np.load(path) for path in classes]
        others = np.concatenate([sets[evenly(len(sets), 12)] for sets in others]).astype("f4")
        with open(options.princeton / "index.csv", newline="") as file:
            rows = [int(row["row"]) for row in csv.DictReader(file) if row["coarse_class"] != "furniture"]
        rows = np.array(rows)[evenly(len(rows), 100)]
        princeton = np.load(options.princeton / "points.npy")[rows].astype("f4")

        found = {}
        for name, sets in [("chairs", chairs[is_known]), ("others", others), ("princeton", princeton)]:
            np.save(folder / f"{name}.npy", sets)
            started = time.monotonic()
            how = ["--draws", "0"] if options.laplace else ["--codes-only"]
            found[name] = json.loads(ebp("score", options.model, folder / f"{name}.npy", *how, "--json"))["sets"]
            seconds = (time.monotonic() - started) / len(sets)
            print(f"{name}: {len(sets)} sets, {seconds:.3f} s each")

    def likelihood(row):
        # Nats per point; none for −∞, where points lie outside of the domain.
        value = row["log_likelihood"]
        return -np.inf if value is None else value

    columns = [("log p(θ)", lambda row: row["log_law"]), ("KL to N(0, I)", lambda row: -row["kl"])]
    if options.laplace:
        columns.append(("log p of the points at θ = μ", lambda row: -row["energy"] - row["log_partition"]))
        columns.append(("log p, Laplace", likelihood))
        ruled_out = {name: sum(not row["is_possible"] for row in rows) for name, rows in found.items()}
        print("above what their neighbours allow:", ruled_out)
    print("\n| area under the curve by | other classes | Princeton |\n|---|---|---|")
    for title, number in columns:
        of = {name: np.array([number(row) for row in rows], float) for name, rows in found.items()}
        cells = [f"{area(of['chairs'], of[s]):.3f} ± {half_width(of['chairs'], of[s]):.3f}" for s in ("others", "princeton")]
        print(f"| {title} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
