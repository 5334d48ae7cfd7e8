#!/usr/bin/env python3
"""Distances between sets and metrics of collections, as Rust constants.

    python tools/reference/set_metrics.py

Chamfer, approxmatch and the collection metrics are their definitions in plain NumPy; Hausdorff and
the assignment are SciPy's, transport between sets of different sizes and Sinkhorn are POT's, the
nearest cell of the divergence's grid is scikit-learn's. Sets are formulas, so that the tests can make
them again: coordinate k of point i of set s is
0.35 sin(1.7 i + 0.9 k + s) + 0.1 cos(5.3 i (k + 1) + 2 s) + 0.02 s.
"""

import numpy as np
import ot
import scipy
import sklearn
from rust_literal import rust
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, directed_hausdorff
from sklearn.neighbors import NearestNeighbors


def cloud(number, size, dim):
    i, k = np.arange(size)[:, None], np.arange(dim)[None]
    return (0.35 * np.sin(1.7 * i + 0.9 * k + number)
            + 0.1 * np.cos(5.3 * i * (k + 1) + 2 * number) + 0.02 * number)


def chamfer(x, y):
    d2 = ((x[:, None] - y[None]) ** 2).sum(-1)
    return d2.min(1).mean() + d2.min(0).mean()


def chamfer_sum(x, y):
    d = np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))
    return d.min(1).sum() + d.min(0).sum()


def exact(x, y):
    cost = cdist(x, y)
    if len(x) == len(y):
        rows, columns = linear_sum_assignment(cost)
        return cost[rows, columns].mean()
    return ot.emd2(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), cost)


def approxmatch(x, y, squared):
    n, m = len(x), len(y)
    largest = max(n, m)
    d2 = ((x[:, None] - y[None]) ** 2).sum(-1)
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
    return (match * (d2 if squared else np.sqrt(d2))).sum() / largest


def sinkhorn(x, y, share):
    cost = cdist(x, y)
    plan = ot.sinkhorn(np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y)), cost,
                       share * cost.mean(), method="sinkhorn_log", stopThr=1e-12, numItermax=100000)
    return (plan * cost).sum()


def collection(samples, references, distance):
    pooled = samples + references
    matrix = np.array([[distance(a, b) for b in pooled] for a in pooled])
    s = len(samples)
    matching = matrix[:s, s:].min(0).mean()
    coverage = len(set(matrix[:s, s:].argmin(1))) / len(references)
    np.fill_diagonal(matrix, np.inf)
    nearest = matrix.argmin(1)
    accuracy = np.mean((nearest < s) == (np.arange(len(pooled)) < s))
    return [matching, coverage, accuracy]


def divergence(samples, references):
    axis = np.linspace(-0.5, 0.5, 28)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    grid = grid[np.linalg.norm(grid, axis=1) <= 0.5]
    search = NearestNeighbors(n_neighbors=1).fit(grid)

    def histogram(clouds):
        cells = search.kneighbors(np.concatenate(clouds), return_distance=False)[:, 0]
        return np.bincount(cells, minlength=len(grid)) / len(cells)

    p, q = histogram(samples), histogram(references)
    m = (p + q) / 2
    kl = lambda a: np.sum(a[a > 0] * np.log2(a[a > 0] / m[a > 0]))
    return (kl(p) + kl(q)) / 2


def main():
    print(f"// NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
          f"POT {ot.__version__}")
    print("const DISTANCES: [Golden; 6] = [")
    for n, m, dim in [(24, 24, 3), (24, 17, 3), (12, 36, 2), (30, 30, 1), (20, 33, 5), (100, 100, 3)]:
        x, y = cloud(1, n, dim), cloud(2, m, dim)
        hausdorff = max(directed_hausdorff(x, y)[0], directed_hausdorff(y, x)[0])
        print(f"    Golden {{ n: {n}, m: {m}, dim: {dim}, chamfer: {rust(chamfer(x, y))}, "
              f"chamfer_sum: {rust(chamfer_sum(x, y))}, hausdorff: {rust(hausdorff)}, "
              f"exact: {rust(exact(x, y))}, approxmatch: {rust(approxmatch(x, y, False))}, "
              f"squared: {rust(approxmatch(x, y, True))}, sinkhorn: {rust(sinkhorn(x, y, 0.2))} }},")
    print("];")
    samples = [cloud(0.9 * s, 36, 3) for s in range(7)]
    references = [cloud(0.5 * s + 0.25, 36, 3) for s in range(6)]
    for name, distance in [("CHAMFER", chamfer), ("EXACT", exact)]:
        values = ", ".join(rust(v) for v in collection(samples, references, distance))
        print(f"const {name}: [f64; 3] = [{values}];")
    print(f"const DIVERGENCE: f64 = {rust(divergence(samples, references))};")


if __name__ == "__main__":
    main()
