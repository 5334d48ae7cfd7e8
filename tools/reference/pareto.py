"""Pareto k of importance weights by arviz: reference values of crates/ebp/src/process/pareto.rs.

    python pareto.py

Log weights are functions of i alone, so that the test makes the same ones.
"""

import arviz
import numpy as np


def places(count):
    return (np.arange(count) + 0.5) / count


print("arviz", arviz.__version__, "numpy", np.__version__)
cases = {
    # A Pareto tail of shape s: w = u^-s.
    f"pareto {shape} {count}": -shape * np.log(places(count))
    for shape in (0.1, 0.5, 0.9, 1.5)
    for count in (25, 100, 1000)
}
cases["logistic 200"] = 2.0 * np.log(places(200) / (1 - places(200)))
cases["bounded 200"] = np.log(places(200))
for name, log_weights in cases.items():
    print(f"{name}: {float(arviz.psislw(np.array(log_weights))[1]):.10f}")
