"""Writes `twoway.csv`: a small experiment with missing cells by NumPy's least squares, for the test of `twoway.rs`.

Run in this folder, with NumPy: python3 twoway.py
"""

import pathlib

import numpy as np

VALUES = [
    {1: 0.10, 2: 0.35, 3: 0.18, 4: 0.21},
    {1: 0.22, 3: 0.33},
    {2: 0.51, 3: 0.29, 4: 0.40},
    {4: 0.05},
]

rows, values = [], []
for trial, of in enumerate(VALUES):
    for round_, value in of.items():
        rows.append(
            [1.0]
            + [float(trial == other) for other in (1, 2, 3)]
            + [float(round_ == other) for other in (2, 3, 4)]
        )
        values.append(value)
design, values = np.array(rows), np.array(values)
effects, squares, rank, _ = np.linalg.lstsq(design, values, rcond=None)
variances = np.linalg.inv(design.T @ design)
freedom = len(values) - rank
lines = [
    f"# twoway.py wrote this with NumPy {np.__version__}.",
    "trial,estimate,variance,squares,freedom,correlation with trial 3",
]
for trial in (1, 2, 3):
    correlation = variances[trial, 3] / np.sqrt(variances[trial, trial] * variances[3, 3])
    lines.append(
        f"{trial},{effects[trial]:.12g},{variances[trial, trial]:.12g},{squares[0]:.12g},{freedom},{correlation:.12g}"
    )
pathlib.Path(__file__).with_name("twoway.csv").write_text("\n".join(lines) + "\n")
