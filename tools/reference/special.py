#!/usr/bin/env python3
"""ln Γ and ψ by SciPy, as the Rust constant GOLDEN of process/special.rs.

    python tools/reference/special.py
"""

import scipy
from rust_literal import rust
from scipy.special import digamma, gammaln

POINTS = [0.01, 0.3, 1.5, 2.25, 3.5, 7.7, 11.99, 12.5, 123.456, 54321.0]


def main():
    print(f"// SciPy {scipy.__version__}")
    for x in POINTS:
        print(f"({rust(x)}, {rust(gammaln(x))}, {rust(digamma(x))}),")


if __name__ == "__main__":
    main()
