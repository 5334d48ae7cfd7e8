#!/usr/bin/env python3
"""Weights and decisions of scikit-learn's LinearSVC, as the Rust constants of tests/metric_classify.rs.

    python tools/reference/linear_svm.py

The data are formulas, rounded to single precision: item i of class i mod num_classes has features
x_ij = sin(1.3 i + 2.1 j + 0.1 i j) + 0.6 cos(1 + class + 2 j).
"""

import numpy as np
import sklearn
from rust_literal import rust
from sklearn.svm import LinearSVC

NUM, DIM = 60, 5


def data(num_classes):
    i, j = np.arange(NUM)[:, None], np.arange(DIM)[None, :]
    labels = np.arange(NUM) % num_classes
    features = np.sin(1.3 * i + 2.1 * j + 0.1 * i * j) + 0.6 * np.cos(1 + labels[:, None] + 2 * j)
    return features.astype(np.float32).astype(np.float64), labels


def main():
    print(f"// scikit-learn {sklearn.__version__}, NumPy {np.__version__}")
    for num_classes, cost in [(3, 1.0), (3, 0.01), (4, 30.0), (2, 1.0)]:
        features, labels = data(num_classes)
        svm = LinearSVC(C=cost, dual=True, tol=1e-9, max_iter=10**5, random_state=0)
        svm.fit(features, labels)
        correct = int((svm.predict(features) == labels).sum())
        print(f"Golden {{ num_classes: {num_classes}, cost: {rust(cost)}, correct: {correct}, weights: &[")
        for weights, intercept in zip(svm.coef_, svm.intercept_):
            print("    [" + ", ".join(rust(v) for v in [*weights, intercept]) + "],")
        print("] },")


if __name__ == "__main__":
    main()
