#!/usr/bin/env python3
"""The Python package beside the library and the program it wraps: distances, all pairs, a training.

    python bench/python.py [--rounds 7] [--write]

Both sides take turns in one sitting, on all cores, and a row is the median over rounds. In a round a distance is
the least of 20 calls on both sides, arranging the clouds included: in this process, and in
`crates/ebp/examples/set_distances.rs`, which is Rust alone. Collections are compared by `ebp metrics`, whose start
and reading of files are among its time. A training's seconds are those of its steps, which both keep.

`pip install ./bindings/python` first, with the sources that the program is built from. `--write` puts the table into
docs/python.md, between the marks of its section "How fast".
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ebp

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "python.md"
MARKS = ("<!-- figures of bench/python.py begin -->\n", "<!-- figures of bench/python.py end -->\n")


class Sizes(NamedTuple):
    """How much is measured."""

    points: int = 2048
    calls: int = 20
    """Of a distance in one round."""
    sets: int = 100
    matched: int = 256
    """Points of sets between which all exact distances are measured."""
    steps: int = 1200


QUICK = Sizes(points=64, calls=2, sets=4, matched=16, steps=5)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


class Table:
    """Rows of medians over rounds, and the ratio of them."""

    def __init__(self) -> None:
        self.lines = ["| work | Python | Rust | Python / Rust |", "|---|---|---|---|"]

    def add(self, work: str, package: list[float], program: list[float]) -> None:
        ours, theirs = statistics.median(package), statistics.median(program)
        self.line(work, in_words(ours), in_words(theirs), f"{ours / theirs:.3f}")

    def alone(self, work: str, package: list[float]) -> None:
        self.line(work, in_words(statistics.median(package)), "–", "–")

    def line(self, *cells: str) -> None:
        self.lines.append(f"| {' | '.join(cells)} |")
        print(self.lines[-1], flush=True)


def in_words(spent: float) -> str:
    return f"{spent:.2f} s" if spent >= 1 else f"{1e3 * spent:.3g} ms"


def distances(table: Table, example: Path, folder: Path, rounds: int, sizes: Sizes) -> None:
    """Chamfer and exact earth mover's distance of two clouds."""
    pair = np.random.default_rng(0).normal(size=(2, sizes.points, 3)).astype(np.float32)
    files = [folder / "a.npy", folder / "b.npy"]
    for file, cloud in zip(files, pair):
        np.save(file, cloud)
    ours: dict[str, list[float]] = {"chamfer": [], "exact": []}
    theirs: dict[str, list[float]] = {"chamfer": [], "exact": []}
    calls = {"chamfer": lambda: ebp.metrics.chamfer(*pair), "exact": lambda: ebp.metrics.emd(*pair)}
    for _ in range(rounds):
        printed = json.loads(output([example, *files, str(sizes.calls)]))
        for name, call in calls.items():
            assert float(call()) == printed[name], (name, float(call()), printed[name])
            ours[name].append(min(seconds(call) for _ in range(sizes.calls)))
            theirs[name].append(printed[f"{name}_seconds"])
    table.add(f"`chamfer`, {sizes.points:,} points", ours["chamfer"], theirs["chamfer"])
    table.add(f"`emd`, {sizes.points:,} points, exact", ours["exact"], theirs["exact"])


def pairs(table: Table, rounds: int, sizes: Sizes) -> None:
    """All pairs of two collections in one call."""
    sets = np.random.default_rng(1).normal(size=(2, sizes.sets, sizes.points, 3)).astype(np.float32)
    all_pairs = f"{sizes.sets} × {sizes.sets} pairs"
    found = [seconds(lambda: ebp.metrics.pairwise(sets[0], sets[1])) for _ in range(rounds)]
    table.alone(f"`pairwise`, chamfer of {all_pairs} of {sizes.points:,} points", found)
    small = sets[:, :, : sizes.matched]
    found = [seconds(lambda: ebp.metrics.pairwise(small[0], small[1], "exact")) for _ in range(rounds)]
    table.alone(f"`pairwise`, exact emd of {all_pairs} of {sizes.matched} points", found)


def collections(table: Table, program: Path, folder: Path, rounds: int, sizes: Sizes) -> None:
    """What `ebp metrics` says of two collections."""
    shape = (2, sizes.sets // 2, sizes.points, 3)
    sets = np.random.default_rng(2).normal(size=shape).astype(np.float32)
    files = [folder / "samples.npy", folder / "references.npy"]
    for file, clouds in zip(files, sets):
        np.save(file, clouds)
    command = [program, "metrics", *files, "--emd", "off", "--no-cache", "--quiet", "--json"]
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(seconds(lambda: output(command)))
        ours.append(seconds(lambda: ebp.metrics.compare(sets[0], sets[1], emd=None)))
    work = f"`compare`, twice {shape[1]} clouds of {sizes.points:,} points, against `ebp metrics`"
    table.add(work, ours, theirs)


def trainings(table: Table, program: Path, folder: Path, rounds: int, sizes: Sizes) -> None:
    """The steps of `ebp train sines`."""
    ours, theirs = [], []
    for number in range(rounds):
        run = folder / f"program-{number}"
        steps = f"train.num_steps={sizes.steps}"
        output([program, "train", "sines", "--set", steps, "--out", run, "--quiet", "--device", "cpu"])
        theirs.append(float(ebp.load(run, device="cpu")._ask.seconds or 0))
        mine = folder / f"package-{number}"
        model = ebp.Curves("sines", [steps], directory=mine, device="cpu").fit()
        ours.append(float(model._ask.seconds or 0))
        assert states(run) == states(mine), "both must end with the same bytes"
    table.add(f"`fit` of `sines`, {sizes.steps:,} steps, against `ebp train`", ours, theirs)


def states(run: Path) -> bytes:
    """The newest checkpoint's bytes."""
    return sorted(run.glob("checkpoints/step-*/state.safetensors"))[-1].read_bytes()


def output(command: list[object]) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def built(options: argparse.Namespace) -> tuple[Path, Path]:
    """The program and the example, built unless they were named."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    if options.program is None:
        subprocess.run(["cargo", "build", "--release", "-p", "ebp-cli"], cwd=ROOT, check=True)
    if options.example is None:
        command = ["cargo", "build", "--release", "-p", "ebp", "--example", "set_distances"]
        subprocess.run(command, cwd=ROOT, check=True)
    return options.program or target / "ebp", options.example or target / "examples" / "set_distances"


def write(lines: list[str]) -> None:
    text = GUIDE.read_text()
    begin, end = (text.index(mark) for mark in MARKS)
    GUIDE.write_text(text[: begin + len(MARKS[0])] + "\n".join(lines) + "\n" + text[end:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--program", type=Path, help="the built ebp; built if left out")
    parser.add_argument("--example", type=Path, help="the built example; built if left out")
    parser.add_argument("--skip-fit", action="store_true", help="leave the trainings out")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to see that it works")
    parser.add_argument("--write", action="store_true", help="put the table into docs/python.md")
    options = parser.parse_args()
    if options.write and (options.quick or options.skip_fit):
        parser.error("--write takes the whole table: leave --quick and --skip-fit out")
    program, example = built(options)
    load = os.getloadavg()[0]
    print(f"load {load:.1f} at the start: the table is worth something on an idle machine only\n")
    table, sizes = Table(), QUICK if options.quick else Sizes()
    print("\n".join(table.lines))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        distances(table, example, folder, options.rounds, sizes)
        pairs(table, min(options.rounds, 3), sizes)
        collections(table, program, folder, options.rounds, sizes)
        if not options.skip_fit:
            trainings(table, program, folder, options.rounds, sizes)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    note = f"Medians of {options.rounds} rounds in which both sides took turns; {cores} cores of {processor()}."
    print(f"\n{note} Load {os.getloadavg()[0]:.1f} at the end.")
    if options.write:
        write([*table.lines, "", note])


if __name__ == "__main__":
    main()
