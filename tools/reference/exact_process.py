#!/usr/bin/env python3
"""Marginals, gradients and predictions of exact processes, as Rust constants.

    python tools/reference/exact_process.py

Gaussian processes by scikit-learn, Student-t marginals by SciPy. The data are formulas, so that
the tests can make them again: t_i = 0.37 i + 0.11 sin(3 i), x_i = sin(2 t_i) + 0.3 cos(7 i) in one
dimension; rows (t_i, cos t_i) in two.
"""

import numpy as np
import scipy
import sklearn
from rust_literal import rust
from scipy.stats import multivariate_t
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, WhiteKernel

NUM, NOISE = 12, 0.05
INDEX = np.arange(NUM)
TIMES = 0.37 * INDEX + 0.11 * np.sin(3 * INDEX)
VALUES = np.sin(2 * TIMES) + 0.3 * np.cos(7 * INDEX)
NEW = np.array([-0.5, 1.0, 2.2, 6.0])
DEGREES = 4.5


def locations(times, dim):
    return times[:, None] if dim == 1 else np.stack([times, np.cos(times)], axis=1)


KERNELS = [
    ("Rbf", 1, ConstantKernel(1.3) * RBF(0.8)),
    ("Rbf", 2, ConstantKernel(1.3) * RBF(0.8)),
    ("Half", 1, ConstantKernel(0.9) * Matern(1.1, nu=0.5)),
    ("ThreeHalves", 1, ConstantKernel(0.9) * Matern(1.1, nu=1.5)),
    ("ThreeHalves", 2, ConstantKernel(0.9) * Matern(1.1, nu=1.5)),
    ("FiveHalves", 1, ConstantKernel(0.9) * Matern(1.1, nu=2.5)),
    ("Periodic", 1, ConstantKernel(1.2) * ExpSineSquared(0.9, 3.1)),
]


def numbers(values):
    return "[" + ", ".join(rust(value) for value in values) + "]"


def main():
    print(f"// scikit-learn {sklearn.__version__}, SciPy {scipy.__version__}, NumPy {np.__version__}")
    for name, dim, kernel in KERNELS:
        noisy = kernel + WhiteKernel(NOISE)
        process = GaussianProcessRegressor(noisy, alpha=0.0, optimizer=None)
        process.fit(locations(TIMES, dim), VALUES)
        value, gradient = process.log_marginal_likelihood(noisy.theta, eval_gradient=True)
        mean, std_dev = process.predict(locations(NEW, dim), return_std=True)
        # SciPy's shape matrix is the covariance times (nu - 2)/nu.
        covariance = noisy(locations(TIMES, dim))
        shape = covariance * (DEGREES - 2) / DEGREES
        student_t = multivariate_t(np.zeros(NUM), shape, df=DEGREES).logpdf(VALUES)
        print(f"Golden {{ kernel: {name}, dim: {dim}, log_marginal: {rust(value)},")
        print(f"  gradient: &{numbers(gradient)},")
        print(f"  mean: {numbers(mean)},")
        print(f"  std_dev: {numbers(std_dev)},")
        print(f"  student_t: {rust(student_t)} }},")


if __name__ == "__main__":
    main()
