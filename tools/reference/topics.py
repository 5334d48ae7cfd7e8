#!/usr/bin/env python3
"""LDA's bound by scikit-learn and Bayesian sets by BayesSets, as constants of tests/topics.rs.

    python tools/reference/topics.py

Documents, λ and γ are small whole numbers and quarters that the test makes in the same way.
"""

import numpy as np
import scipy
import sklearn
from bayessets import BernoulliBayesianSet
from rust_literal import rust
from sklearn.decomposition import LatentDirichletAllocation

DOCUMENTS, WORDS, TOPICS = 7, 11, 3


def counts():
    """c_dw = (3 d + 5 w + d w) mod 7 − 3, at least 0, and one word that every document has."""
    d, w = np.meshgrid(np.arange(DOCUMENTS), np.arange(WORDS), indexing="ij")
    c = np.maximum((3 * d + 5 * w + d * w) % 7 - 3, 0)
    c[:, 0] += 1
    return c


def main():
    print(f"// scikit-learn {sklearn.__version__}, SciPy {scipy.__version__}, NumPy {np.__version__}")
    x = counts()
    k, w = np.meshgrid(np.arange(TOPICS), np.arange(WORDS), indexing="ij")
    components = 0.25 + ((2 * k + 3 * w + k * w) % 5)
    d, k = np.meshgrid(np.arange(DOCUMENTS), np.arange(TOPICS), indexing="ij")
    gamma = 0.5 + ((d + 2 * k) % 4)
    for alpha, eta in [(0.3, 0.05), (0.9, 0.7)]:
        model = LatentDirichletAllocation(TOPICS, doc_topic_prior=alpha, topic_word_prior=eta, max_iter=1,
                                          random_state=0).fit(x)
        model.components_ = components
        model.exp_dirichlet_component_ = np.exp(
            scipy.special.psi(components) - scipy.special.psi(components.sum(1))[:, None])
        bound = model._approx_bound(x, gamma, sub_sampling=False)
        print(f"({rust(alpha)}, {rust(eta)}, {rust(bound)}),")
    sets(x)


def sets(x):
    """Scores by the PyPI package BayesSets 0.2.1; features that all or no documents have are left out."""
    x = (x > 0).astype(float)
    x = x[:, (x.mean(0) > 0) & (x.mean(0) < 1)]
    scores = BernoulliBayesianSet(np.asmatrix(x), meanfactor=2).query([1, 4])
    print("[" + ", ".join(rust(float(value)) for value in scores) + "]")


if __name__ == "__main__":
    main()
