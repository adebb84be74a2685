"""A committee that reads digits.

Three classifiers vote on which digit an image of 8 × 8 pixels shows: nearest neighbours, a forest of trees, logistic
regression. Each has settings of its own: whole numbers, a choice, a strength; and their votes have weights. Wanted is
the committee with the lowest log loss whose forest fits into a microcontroller, at most 2,000 nodes, which are counted
only after it is grown.

The space is a product of a simplex (weights add up to one), whole numbers, a choice without order, and a box: no part
is rounded or relaxed into another one. scikit-learn (BSD-3-Clause) brings images and classifiers.
"""

import numpy as np

import nestbo as nb
from nestbo.gallery import Application, Coordinates, draw, needs

with needs("scikit-learn"):
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

IMAGES, DIGITS = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(DIGITS))
KNOWN, ASKED = ORDER[:300], ORDER[300:900]  # few known images: the members make different mistakes
NODES = 2000  # of the forest, that fit
DISTANCES = ("euclidean", "manhattan", "cosine")
SPACE = nb.Product(
    weights=nb.Simplex(2),
    neighbours=nb.Integer(1, 30),
    depth=nb.Integer(2, 12),
    trees=nb.Integer(3, 60, "log"),
    distance=nb.Choice(*DISTANCES),
    strength=nb.Box(-4.0, 1.0),  # decimal logarithm of the inverse of the penalty
)


def members(neighbours, depth, trees, distance, strength):
    """The three classifiers, trained."""
    found = [
        KNeighborsClassifier(int(neighbours), metric=DISTANCES[int(distance)], weights="distance"),
        RandomForestClassifier(int(trees), max_depth=int(depth), random_state=0),
        LogisticRegression(C=10.0**strength, max_iter=100, tol=1e-2),
    ]
    return [member.fit(IMAGES[KNOWN] / 16, DIGITS[KNOWN]) for member in found]


def votes(x):
    """What each member believes of the true digit of each image, (3, n), and the nodes of the forest."""
    trained = members(*x[3:])
    beliefs = [member.predict_proba(IMAGES[ASKED] / 16) for member in trained]
    right = np.stack([belief[np.arange(len(ASKED)), DIGITS[ASKED]] for belief in beliefs])
    return right, sum(tree.tree_.node_count for tree in trained[1].estimators_)


def outcome(x):
    """The log loss, and by how much the forest is small enough, relative to what fits."""
    right, nodes = votes(x)
    loss = -np.log(np.clip(x[:3] @ right, 1e-4, 1)).mean()
    return nb.Observation(float(loss), constraints=[1 - nodes / NODES])


def picture(x, axes):
    """The images that the committee is least sure of."""
    right, nodes = votes(x)
    worst = np.argsort(x[:3] @ right)[:15].reshape(3, 5)
    framed = np.pad(IMAGES[ASKED].reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    axes.imshow(np.block([[framed[i] for i in row] for row in worst]), cmap="gray_r")
    axes.axis("off")
    weights = "/".join(f"{100 * w:.0f}" for w in x[:3])
    axes.set_title(f"neighbours/forest/logistic {weights} %, {nodes} nodes; hardest images", size=9)


LOW, HIGH = [0.5, 1.5, 2.5, -0.5, -4.0], [30.5, 12.5, 60.5, 2.5, 1.0]


def rounded(weights, rest):
    whole = np.clip(np.round(rest[:4]), [1, 2, 3, 0], [30, 12, 60, 2])
    return np.r_[weights, whole, rest[4]]


def exponential(u):
    """Weights from logarithms of uniform numbers, normalised."""
    return rounded(np.log(u[:3]) / np.log(u[:3]).sum(), u[3:])


def softmax(u):
    return rounded(np.exp(u[:3]) / np.exp(u[:3]).sum(), u[3:])


APPLICATION = Application(
    name="ensemble",
    value="log loss",
    space=SPACE,
    objective=outcome,
    picture=picture,
    coordinates=[
        Coordinates("normalised logarithms, rounded", [0.001] * 3 + LOW, [0.999] * 3 + HIGH, exponential),
        Coordinates("softmax, rounded", [-4.0] * 3 + LOW, [4.0] * 3 + HIGH, softmax),
    ],
    budget=60,
    worst=3.0,
)

if __name__ == "__main__":
    study = nb.Study(SPACE, seed=0, store="ensemble.db")
    study.run(outcome, budget=APPLICATION.budget, numpy=True)
    print(f"log loss {study.best.value:.3f} with {study.best.x.numpy().round(2)}")
    draw(APPLICATION, study).savefig("ensemble.png")
