"""Logistic regression with an L2 penalty, summed in a fixed order: the same numbers whatever the machine's threads."""

from __future__ import annotations

import numpy as np

from dataproc.kernels.compiling import kernel


@kernel
def loss_of(features, targets, weights, beta, l2):
    """Penalised cross entropy. features: (rows, columns); targets: (rows,) 0 or 1; weights: (rows,); beta: (columns + 1,), the last one is
    the intercept, which has no penalty."""
    columns = features.shape[1]
    loss = 0.0
    for j in range(columns):
        loss += 0.5 * l2 * beta[j] * beta[j]
    for i in range(features.shape[0]):
        z = beta[columns]
        for j in range(columns):
            z += features[i, j] * beta[j]
        # log(1 + exp(z)) - y * z, without overflow.
        loss += weights[i] * (max(z, 0.0) + np.log(1.0 + np.exp(-abs(z))) - targets[i] * z)
    return loss


@kernel
def newton_step(features, targets, weights, beta, l2, hessian, step):
    """Fills step (columns + 1,) with H^-1 g, for beta - step. hessian: (columns + 1, columns + 1) scratch. Returns the largest |g|."""
    columns = features.shape[1]
    size = columns + 1
    hessian[:] = 0
    step[:] = 0
    for j in range(columns):
        hessian[j, j] = l2
        step[j] = l2 * beta[j]
    hessian[columns, columns] = 1e-9
    for i in range(features.shape[0]):
        z = beta[columns]
        for j in range(columns):
            z += features[i, j] * beta[j]
        p = 1.0 / (1.0 + np.exp(-z))
        slope = weights[i] * (p - targets[i])
        curve = weights[i] * max(p * (1.0 - p), 1e-12)
        for j in range(columns):
            step[j] += slope * features[i, j]
            scaled = curve * features[i, j]
            for k in range(j + 1):
                hessian[j, k] += scaled * features[i, k]
            hessian[columns, j] += scaled
        step[columns] += slope
        hessian[columns, columns] += curve
    steepest = 0.0
    for j in range(size):
        steepest = max(steepest, abs(step[j]))
    _solve(hessian, step, size)
    return steepest


@kernel
def _solve(lower, x, size):
    """x <- A^-1 x by Cholesky; A is positive definite, its lower triangle is given and replaced by its factor."""
    for j in range(size):
        for k in range(j + 1):
            total = lower[j, k]
            for m in range(k):
                total -= lower[j, m] * lower[k, m]
            lower[j, k] = np.sqrt(max(total, 1e-18)) if j == k else total / lower[k, k]
    for j in range(size):
        for m in range(j):
            x[j] -= lower[j, m] * x[m]
        x[j] /= lower[j, j]
    for j in range(size - 1, -1, -1):
        for m in range(j + 1, size):
            x[j] -= lower[m, j] * x[m]
        x[j] /= lower[j, j]
