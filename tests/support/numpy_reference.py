"""The kernels in plain NumPy: slow, obvious, and what the kernels are held against."""

from __future__ import annotations

import numpy as np

EPSILON = 1e-3


def distance(z, first, second):
    return np.sqrt(((z[first] - z[second]) ** 2).sum(axis=1) + EPSILON**2)


def loss(z, triplets, weight, margin):
    a, i, j = triplets.T
    violation = margin + distance(z, a, i) - distance(z, a, j)
    return float((weight * np.logaddexp(0.0, violation)).sum() / weight.sum())


def slopes(z, triplets, weight, margin):
    a, i, j = triplets.T
    near, far = distance(z, a, i), distance(z, a, j)
    slope = weight * np.exp(-np.logaddexp(0.0, -(margin + near - far))) / weight.sum()
    return slope / near, slope / far


def laplacian(z, triplets, weight, margin):
    pull, push = slopes(z, triplets, weight, margin)
    out = np.zeros((len(z), len(z)))
    for t, (a, i, j) in enumerate(triplets):
        for other, force in ((i, pull[t]), (j, -push[t])):
            edge = np.zeros(len(z))
            edge[a], edge[other] = 1.0, -1.0
            out += force * np.outer(edge, edge)
    return out


def gradient(z, triplets, weight, margin):
    a, i, j = triplets.T
    pull, push = slopes(z, triplets, weight, margin)
    near, far = pull[:, None] * (z[a] - z[i]), push[:, None] * (z[a] - z[j])
    out = np.zeros_like(z)
    np.add.at(out, a, near - far)
    np.add.at(out, i, -near)
    np.add.at(out, j, far)
    return out


def objective(z, triplets, weight, margin, lam, p):
    scale = np.linalg.svd(z, compute_uv=False)
    return loss(z, triplets, weight, margin) + lam * (scale[scale > 1e-9] ** p).sum()
