"""log P(a < z < b) of a standard normal, for the unit test of process/hypotheses.rs.

Made with SciPy 1.17.1:  python tools/reference/normal_mass.py
"""

import numpy as np
from scipy.stats import norm

for low, high in [(-1, 1), (0, np.inf), (1.5, 1.6), (-3, -2.9), (6, np.inf), (6, 6.5), (-9.2, -9)]:
    a, b = (-high, -low) if low + high < 0 else (low, high)
    if a < 0:
        mass = np.log(norm.cdf(b) - norm.cdf(a))
    else:
        mass = norm.logsf(a) + np.log1p(-np.exp(norm.logsf(b) - norm.logsf(a)))
    print(low, high, repr(float(mass)))
