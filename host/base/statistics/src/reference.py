"""Prints the reference values in the tests of `clusters.rs` and `anytime.rs`, with NumPy 2.4 and SciPy 1.17.

Nothing here uses the formulas' Rust code: skewness and Student's distribution are SciPy's, and the evidence of a t
statistic is integrated numerically from the noncentral t distribution.
"""

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import nct, norm, skew, t, ttest_1samp

VALUES = [
    [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4],
    [10, 10, 10, 9, 10, 9, 10, 3],
    [1, 0.25, 1, 1, 1, 0, 1, 1, 0.5, 1, 1, 1, 1, 0.75, 1, 1, 1, 1, 1, 0.9],
]

# Times Student's distance that an end lies from the mean at most.
FARTHEST = 3


def willink(values):
    """The 95 % interval of the mean (Willink 2005, formula 8)."""
    values = np.array(values, dtype=float)
    count = len(values)
    error = values.std(ddof=1) / np.sqrt(count)
    a = skew(values, bias=False) / (6 * np.sqrt(count))

    def quantile_of(r):
        return (np.cbrt(1 + 6 * a * (r - a)) - 1) / (2 * a)

    r = t.ppf(0.975, count - 1)
    low = values.mean() - min(quantile_of(r), FARTHEST * r) * error
    high = values.mean() - max(quantile_of(-r), -FARTHEST * r) * error
    return low, high


def evidence(statistic, count, prior):
    """The ratio of the t statistic's density with a normal effect, worth `prior` values, to the one without an effect."""
    deviation = 1 / np.sqrt(prior)
    middle = statistic / np.sqrt(count)

    def weighed(effect):
        density = nct.pdf(statistic, count - 1, effect * np.sqrt(count))
        return density * norm.pdf(effect, 0, deviation)

    points = [0, middle - 1, middle, middle + 1]
    total = quad(weighed, -8 * deviation, 8 * deviation, points=points, limit=400)[0]
    return total / t.pdf(statistic, count - 1)


print("clusters: the interval's ends, and the p-value of Student's test")
for values in VALUES:
    numbers = *willink(values), ttest_1samp(values, 0).pvalue
    print(values, *(f"{number:.9g}" for number in numbers))
print("anytime: values and quantile")
for count in (3, 4, 5, 8, 10):
    quantile = brentq(lambda statistic: evidence(statistic, count, 0.1) - 20, 2, 30)
    print(count, f"{quantile:.9g}")
