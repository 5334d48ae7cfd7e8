#!/usr/bin/env python3
"""Log marginals, bounds and 1-NN errors of latent variable models by GPy, as Rust constants.

    python tools/reference/gplvm.py                  the numbers of tests/gplvm.rs
    python tools/reference/gplvm.py rows.npy labels.npy [--kernel bias] [--bayesian M]
                                                     1-NN error in two dimensions of one's own table

Made with GPy 1.15.0, NumPy 2.4.6, SciPy 1.17.1. The data are formulas, so that the tests can make
them again. GPy adds 1e-8 to the noise variance of an exact Gaussian process.

For a table: columns are centred and divided by their standard deviation (all by one number with
--whole), latents begin at the first two principal components of variance 1 whose directions have a
positive largest entry, hyperparameters at 1 (noise 0.1), and GPy's L-BFGS climbs until it stops.
"""

import argparse
import sys

import GPy
import numpy as np


def formulas():
    n, q, d, m = 12, 2, 3, 5
    i = np.arange(n * q)
    latents = np.sin(1.3 * i + 0.2).reshape(n, q)
    values = np.cos(0.7 * np.arange(n * d) + 0.1 * np.arange(n * d) ** 1.1).reshape(n, d)
    variance = 0.05 + 0.04 * (1 + np.cos(np.arange(n * q))).reshape(n, q)
    inducing = np.sin(0.9 * np.arange(m * q) + 1.0).reshape(m, q)
    return latents, values, variance, inducing


def golden():
    latents, values, variance, inducing = formulas()
    rbf = lambda: GPy.kern.RBF(2, variance=1.3, lengthscale=[0.7, 1.1], ARD=True)
    for name, kernel in [
        ("RBF", rbf()),
        ("SUM", rbf() + GPy.kern.Linear(2, variances=0.4) + GPy.kern.Bias(2, variance=0.2)),
    ]:
        model = GPy.models.GPLVM(values, 2, X=latents, kernel=kernel)
        model.likelihood.variance = 0.05
        print(f"{name}: {model.log_likelihood()!r}, by t[0]: {model.X.gradient[0].tolist()}")
    def bound(latents, inducing):
        model = GPy.models.BayesianGPLVM(
            values, 2, X=latents, X_variance=variance.copy(), Z=inducing, kernel=rbf(), num_inducing=5
        )
        model.likelihood.variance = 0.05
        return float(np.squeeze(model.log_likelihood()))

    print(f"BOUND: {bound(latents.copy(), inducing.copy())!r}")
    # Differences of GPy's bound: what the model reports is of the noise before it was set.
    for name, which in [("mean", 0), ("z", 1)]:
        for j in range(2):
            sides = []
            for h in (1e-5, -1e-5):
                moved = [latents.copy(), inducing.copy()]
                moved[which][0, j] += h
                sides.append(bound(*moved))
            print(f"by {name}[0][{j}]: {(sides[0] - sides[1]) / 2e-5:.6f}")


def principal(values):
    u, s, vt = np.linalg.svd(values - values.mean(0), full_matrices=False)
    sign = np.sign(vt[np.arange(2), np.abs(vt[:2]).argmax(1)])
    return np.sqrt(len(values)) * u[:, :2] * sign


def nearest(latents, labels):
    far = ((latents[:, None] - latents[None]) ** 2).sum(-1)
    np.fill_diagonal(far, np.inf)
    return (labels[far.argmin(1)] != labels).mean()


def table(arguments):
    values = np.load(arguments.rows).astype(float)
    labels = np.load(arguments.labels)
    values = values - values.mean(0)
    values = values / (values.std() if arguments.whole else values.std(0))
    latents = principal(values)
    print(f"PCA: 1-NN error {nearest(latents, labels):.4f}")
    kernel = GPy.kern.RBF(2, ARD=True)
    if arguments.kernel == "bias":
        kernel = kernel + GPy.kern.Bias(2, variance=0.1)
    if arguments.bayesian:
        rng = np.random.default_rng(0)
        inducing = latents[rng.permutation(len(latents))[: arguments.bayesian]]
        model = GPy.models.BayesianGPLVM(
            values, 2, X=latents, X_variance=np.full_like(latents, 0.1), Z=inducing, kernel=kernel
        )
    else:
        model = GPy.models.GPLVM(values, 2, X=latents, kernel=kernel)
    model.likelihood.variance = 0.1
    model.optimize("lbfgs", max_iters=arguments.iterations)
    found = model.X.mean if arguments.bayesian else model.X
    found = np.asarray(found)
    error = nearest(found, labels)
    rbf = model.kern.rbf if arguments.kernel == "bias" else model.kern
    scaled = nearest(found / np.asarray(rbf.lengthscale), labels)
    nats = float(np.squeeze(model.log_likelihood())) / values.size
    print(f"GPy: 1-NN error {error:.4f}, in length scales {scaled:.4f}, {nats:.6f} nats a number")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="?")
    parser.add_argument("labels", nargs="?")
    parser.add_argument("--kernel", default="rbf")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--bayesian", type=int)
    parser.add_argument("--iterations", type=int, default=2000)
    arguments = parser.parse_args()
    print(f"GPy {GPy.__version__}, NumPy {np.__version__}", file=sys.stderr)
    golden() if arguments.rows is None else table(arguments)
