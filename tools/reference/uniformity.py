"""Tails of chi-square for the tests of metric/uniformity.rs.

    python3 tools/reference/uniformity.py
"""

import scipy
from scipy.stats import chi2

print("SciPy", scipy.__version__)
for x, k in [(0.5, 1), (3.84, 1), (10.0, 9), (19.0, 19), (45.3, 19), (150.0, 99), (300.0, 19), (2.0, 19)]:
    print((x, float(k), chi2.sf(x, k)))
