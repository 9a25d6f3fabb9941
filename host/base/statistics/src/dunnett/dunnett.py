"""Writes `dunnett.csv`: Dunnett's distribution as SciPy has it, for the test of `dunnett.rs`.

Run in this folder:

    python3 -m venv venv && venv/bin/pip install scipy
    venv/bin/python dunnett.py

The probabilities integrate the distribution's definition with SciPy's functions. Where there is a sample with
these ratios, `scipy.stats.dunnett`, which integrates another way and to fewer digits, must say the same.
"""

import pathlib

import numpy as np
import scipy
from scipy import optimize, special, stats

NODES, WEIGHTS = np.polynomial.legendre.leggauss(600)


def nodes(low, high):
    """Gauss and Legendre's nodes and weights between two numbers."""
    half = (high - low) / 2
    return low + half * (NODES + 1), half * WEIGHTS


def any_beyond(ratio, k, correlation, freedom):
    """The probability that any of k ratios lies beyond a distance from zero."""
    common, own = np.sqrt(correlation), np.sqrt(1 - correlation)
    chi, of_chi = nodes(*stats.chi(freedom).ppf([1e-15, 1 - 1e-15]))
    z, of_z = nodes(-9, 9)
    distance = (ratio * chi / np.sqrt(freedom))[:, None]
    inside = special.ndtr((distance - common * z) / own) - special.ndtr(
        (-distance - common * z) / own
    )
    within = inside**k @ (of_z * stats.norm.pdf(z))
    return 1 - np.sum(of_chi * stats.chi.pdf(chi, freedom) * within)


def check(k, repeats, seed):
    """The probability that `scipy.stats.dunnett` states of drawn samples, against ours."""
    random = np.random.default_rng(seed)
    samples = [random.normal(0.8 * (place == 1), 1, repeats) for place in range(k + 1)]
    found = stats.dunnett(*samples[1:], control=samples[0], random_state=seed)
    ratio, theirs = abs(found.statistic[0]), found.pvalue[0]
    ours = any_beyond(ratio, k, 0.5, (k + 1) * (repeats - 1))
    assert abs(ours - theirs) < 2e-3, (k, repeats, ours, theirs)
    return ratio, ours


rows = []
for k, correlation, freedom in [
    (2, 0.5, 2),
    (2, 0.5, 4),
    (3, 0.5, 6),
    (4, 0.5, 8),
    (5, 0.5, 12),
    (11, 0.5, 22),
    (11, 0.25, 22),
    (3, 0.0, 5),
    (2, 0.8, 7),
    (40, 0.5, 80),
]:
    quantile = optimize.brentq(
        lambda t: any_beyond(t, k, correlation, freedom) - 0.05, 1.5, 15, xtol=1e-8
    )
    for ratio in (1.3, 2.9):
        probability = any_beyond(ratio, k, correlation, freedom)
        rows.append((k, correlation, freedom, ratio, probability, quantile))
for k, repeats in [(2, 3), (5, 3), (3, 5)]:
    freedom = (k + 1) * (repeats - 1)
    ratio, probability = check(k, repeats, seed=k)
    quantile = optimize.brentq(
        lambda t: any_beyond(t, k, 0.5, freedom) - 0.05, 1.5, 15, xtol=1e-8
    )
    rows.append((k, 0.5, freedom, ratio, probability, quantile))

lines = [f"# dunnett.py wrote this with SciPy {scipy.__version__}."]
lines.append("differences,correlation,freedom,ratio,probability,quantile")
lines += [
    f"{k},{correlation},{freedom},{ratio:.10g},{probability:.10g},{quantile:.10g}"
    for k, correlation, freedom, ratio, probability, quantile in rows
]
pathlib.Path(__file__).with_name("dunnett.csv").write_text("\n".join(lines) + "\n")
