"""Reference values for finite determinantal point processes, by dppy's definitions.

dppy 0.3.3, NumPy 2.4.6, SciPy 1.17.1. The kernel is L_ij = exp(-(i - j)^2 / 8) * q_i q_j with
q_i = 0.6 + 0.1 i on six items. Prints log-likelihoods of subsets (det L_A / det(I + L), and det L_A over the
elementary symmetric polynomial that dppy computes), and inclusion frequencies of dppy's exact samplers.
"""

import numpy as np
from dppy.finite_dpps import FiniteDPP
from dppy.exact_sampling import elementary_symmetric_polynomials as elementary

COUNT = 6
ORDER = 3
DRAWS = 20_000

places = np.arange(COUNT)
quality = 0.6 + 0.1 * places
kernel = np.exp(-((places[:, None] - places[None, :]) ** 2) / 8.0) * np.outer(quality, quality)

law = FiniteDPP("likelihood", **{"L": kernel})
law.compute_K()
eigenvalues = np.linalg.eigvalsh(kernel)
normaliser = elementary(eigenvalues, ORDER)[ORDER, COUNT]

for subset in ([], [2], [0, 5], [1, 2, 4], [0, 2, 3, 5]):
    minor = np.linalg.det(kernel[np.ix_(subset, subset)])
    line = f"{subset}: log likelihood {np.log(minor) - np.linalg.slogdet(np.eye(COUNT) + kernel)[1]:.12f}"
    if len(subset) == ORDER:
        line += f", as a {ORDER}-DPP {np.log(minor / normaliser):.12f}"
    print(line)
print("inclusion probabilities, the diagonal of K:", np.array2string(np.diag(law.K), precision=12))

for name, draw in (
    ("L-ensemble", lambda generator: law.sample_exact(random_state=generator)),
    ("k-DPP", lambda generator: law.sample_exact_k_dpp(size=ORDER, random_state=generator)),
):
    generator = np.random.RandomState(1)
    counts = np.zeros(COUNT)
    pairs = 0
    for _ in range(DRAWS):
        chosen = list(draw(generator))
        counts[chosen] += 1
        pairs += 1 in chosen and 2 in chosen
    print(name, "frequencies", np.array2string(counts / DRAWS, precision=5), "of items 1 and 2 together", pairs / DRAWS)
