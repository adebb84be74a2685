"""What makes two wines alike.

A sample of wine is described by thirteen chemical measurements, and its grower is guessed from the most similar samples
(k nearest neighbours). But what is similar? Wanted is the measure of similarity with which the guesses are best. It is
judged on random halves of the samples, so that values are noisy.

The space is that of symmetric positive definite 13 × 13 matrices, 91 numbers: a matrix M says that the squared distance
of two samples is dᵀMd (Mahalanobis). People scale each measurement, which is a diagonal M; a full one knows that some
measurements say the same. Few combinations matter, a nested structure. scikit-learn (BSD-3-Clause) brings the data.
"""

import numpy as np
from scipy.linalg import expm

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("scikit-learn"):
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import StandardScaler

WINE = load_wine()
SAMPLES, GROWERS = StandardScaler().fit_transform(WINE.data), WINE.target
N, LOW, HIGH = 13, 0.01, 10.0  # measurements, bounds of eigenvalues
SOFTNESS = 1.0  # neighbours count with exp(−distance²/softness): the loss is then smooth in the metric
LEAST = 0.01  # probability that a guess is given, so that one mistake does not decide everything
SPLITS = 8  # random halves behind one value
RNG = np.random.default_rng(0)


def factor(matrix):
    """F with FFᵀ = M: distances of samples times F are those of the metric."""
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(values)


def log_loss(matrix, known, asked):
    """Of the growers of some samples, guessed from known ones whose neighbours vote with soft weights."""
    seen = SAMPLES @ factor(matrix)
    squared = ((seen[asked, None] - seen[known]) ** 2).sum(-1)
    weights = np.exp(-(squared - squared.min(1, keepdims=True)) / SOFTNESS)
    right = (weights * (GROWERS[known] == GROWERS[asked, None])).sum(1) / weights.sum(1)
    return float(-np.log(np.clip(right, LEAST, 1)).mean())


def loss(matrix):
    """The mean over random halves: noisy."""
    halves = [np.array_split(RNG.permutation(len(GROWERS)), 2) for _ in range(SPLITS)]
    return float(np.mean([log_loss(matrix, known, asked) for known, asked in halves]))


def truth(matrix):
    """The mean over many halves, the same ones every time."""
    rng = np.random.default_rng(1)
    halves = [np.array_split(rng.permutation(len(GROWERS)), 2) for _ in range(30)]
    return float(np.mean([log_loss(matrix, known, asked) for known, asked in halves]))


def picture(matrix, axes):
    values, vectors = np.linalg.eigh(matrix)
    seen = SAMPLES @ (vectors * np.sqrt(values))[:, ::-1]
    axes.scatter(*seen[:, :2].T, c=GROWERS, cmap="viridis", s=14)
    for axis, label in enumerate((axes.set_xlabel, axes.set_ylabel)):
        direction = vectors[:, ::-1][:, axis]
        main = np.argsort(-abs(direction))[:3]
        label(" ".join(f"{direction[i]:+.1f} {WINE.feature_names[i].split('/')[0]}" for i in main), size=7)


def diagonal(u):
    return np.diag(np.exp(u))


def logarithm(u):
    """The exponential of a symmetric matrix, its eigenvalues kept within bounds: all 91 numbers."""
    symmetric = np.zeros((N, N))
    symmetric[np.tril_indices(N)] = u
    values, vectors = np.linalg.eigh(expm((symmetric + symmetric.T) / 2))
    return (vectors * np.clip(values, LOW, HIGH)) @ vectors.T


SPACE = nb.SPD(N, eigenvalues=(LOW, HIGH), scale="log")
APPLICATION = Application(
    name="neighbours",
    value="log loss",
    space=SPACE,
    objective=loss,
    picture=picture,
    coordinates=[
        Coordinates("diagonal", [np.log(LOW)] * N, [np.log(HIGH)] * N, diagonal),
        Coordinates("logarithm of the matrix", [-2.0] * 91, [2.0] * 91, logarithm),
    ],
    budget=120,
    worst=5.0,
    noise="infer",
    truth=truth,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, noise="infer", store="neighbours.db")
    study.run(loss, budget=APPLICATION.budget, numpy=True)
    best = study.recommend()
    print(f"log loss {truth(best.x.numpy()):.3f}; all measurements alike: {truth(np.eye(N)):.3f}")
    draw(APPLICATION, study).savefig("neighbours.png")
