"""Held-out problems as applications pose them: likelihoods, energies, alignments, phases, a portfolio."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from nestbo import linalg
from nestbo.errors import ArgumentError
from nestbo.manifolds import SPD, Box, Product, Quaternion, Rotation, Simplex, Space, Sphere, Torus
from nestbo.nested import Identity
from nestbo.problems.posed import CONSTANTS, Builder, Posed, generator, with_best_known

M = TypeVar("M", bound=Space)
_GAP = 1e-3  # between the two least eigenvalues, whose largest is 1
_CONCENTRATION = 20.0  # of the directions around their mean
_DIRECTIONS = 60
_SPREAD = 0.15  # standard deviation of the entries of a direction within its cluster
_CHARGES = {6: 9.985281374238570}  # Thomson: six charges form an octahedron, whose energy is 3 (4/√2 + 1/2)
_NEAREST = 1e-3  # distance of two charges below which their energy no longer grows
_FIELD = 0.05  # pull of each phase, beside couplings of about 1
_MARKS = 12  # points of the body that is aligned
_AVERSION = 2.0  # to risk, beside a return of 1


def rayleigh_quotient(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """xᵀAx with eigenvalues 0, 0.001 and others up to 1: a gap of 1e-3, in a random frame."""
    sphere = _whole("rayleigh-quotient", space, latent_dim, Sphere)
    frame = linalg.random_frames(sphere.n + 1, sphere.n + 1, rng=generator(seed))
    values = torch.cat([torch.zeros(1), torch.linspace(_GAP, 1, sphere.n)]).double()

    def value(x: Tensor, frame: Tensor, values: Tensor) -> Tensor:
        return (values * (x @ frame).square()).sum(-1)

    return Posed("rayleigh-quotient", space, Identity(space), value, (frame, values), 0.0, frame[:, 0])


def von_mises_fisher(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """Minus the mean log-likelihood of a mean direction, given 60 directions in two clusters and no cluster.

    Half of the density is uniform, the other half von Mises–Fisher with concentration 20, so that the smaller cluster
    makes a local minimum. A seed turns all directions alike.
    """
    sphere = _whole("von-mises-fisher", space, latent_dim, Sphere)
    rng = generator(CONSTANTS)
    centres = linalg.random_frames(sphere.n + 1, 2, rng=rng).mT
    first, second, neither = (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)  # of every five directions, two, one and two
    sizes = torch.tensor([first, first, second, neither, neither], dtype=torch.float64)
    sizes = sizes[torch.arange(_DIRECTIONS) % 5]
    drawn = torch.randn(_DIRECTIONS, sphere.n + 1, generator=rng, dtype=torch.float64)
    turn = _turn(sphere.n + 1, seed)
    directions = linalg.unit(sizes @ centres + _SPREAD * drawn) @ turn
    constant = _log_mean_exponential(sphere.n, _CONCENTRATION)

    def value(x: Tensor, directions: Tensor, turn: Tensor) -> Tensor:
        ratio = _CONCENTRATION * (x @ directions.mT) - constant
        return -torch.log(0.5 + 0.5 * torch.exp(ratio)).mean(-1)

    posed = Posed("von-mises-fisher", space, Identity(space), value, (directions, turn), math.nan, None)
    return _turned(with_best_known(posed), turn)


def _log_mean_exponential(n: int, concentration: float) -> float:
    """log E exp(κ x₁) over the sphere S^n: log of Γ(ν + 1) (2/κ)^ν I_ν(κ), ν = (n − 1)/2."""
    from scipy.special import ive  # a second to import, which every command would wait for

    order = (n - 1) / 2
    scaled = math.log(ive(order, concentration)) + concentration
    return math.lgamma(order + 1) + order * math.log(2 / concentration) + scaled


def _turn(size: int, seed: int) -> Tensor:
    """A random rotation or reflection; the identity for seed 0, whose optimum is stored."""
    first, drawn = (linalg.random_frames(size, size, rng=generator(of)) for of in (0, seed))
    return first.mT @ drawn


def _turned(posed: Posed, turn: Tensor) -> Posed:
    """With the stored optimum, which belongs to the data of seed 0, turned as the data are."""
    return posed if posed.optimum is None else replace(posed, optimum=posed.optimum @ turn)


def wishart(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """log det Σ + tr(Σ⁻¹ S): minus twice the log-likelihood of a covariance per datum; least at Σ = S."""
    matrices = _whole("wishart", space, latent_dim, SPD)
    sample = matrices.random(rng=generator(seed))

    def value(x: Tensor, sample: Tensor) -> Tensor:
        solved = torch.linalg.solve(x, sample)
        return torch.linalg.slogdet(x)[1] + solved.diagonal(dim1=-2, dim2=-1).sum(-1)

    least = value(sample, sample).item()
    return Posed("wishart", space, Identity(space), value, (sample,), least, sample)


def thomson(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """Σ 1/|x_i − x_j| of six charges on S²: least in an octahedron; the same for every seed."""
    product = _whole("thomson", space, latent_dim, Product)
    if product.factors != (Sphere(2),) * 6:
        raise ArgumentError(f"The problem 'thomson' needs a product of six Sphere(2), got {space}.")

    def value(x: Tensor) -> Tensor:
        charges = torch.stack(product.split(x), -2)
        first, second = torch.triu_indices(6, 6, 1, device=x.device)
        distance = linalg.norm(charges[..., first, :] - charges[..., second, :])
        return (1 / distance.clamp(min=_NEAREST)).sum(-1)

    axes = torch.eye(3, dtype=torch.float64)
    return Posed("thomson", space, Identity(space), value, (), _CHARGES[6], torch.cat([axes, -axes]).flatten())


def phases(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """Coupled phases: Σ J_ij (1 − cos(θ_i − θ_j − a_ij)) + weak fields, 0 where all agree."""
    torus = _whole("phases", space, latent_dim, Torus)
    rng = generator(seed)
    hidden = torus.random(rng=rng)
    coupling = 0.5 + torch.rand(torus.n, torus.n, generator=rng, dtype=torch.float64)
    linked = torch.rand(torus.n, torus.n, generator=rng, dtype=torch.float64) < 4 / torus.n  # about four neighbours
    coupling = (coupling * linked).triu(1)

    def value(x: Tensor, hidden: Tensor, coupling: Tensor) -> Tensor:
        off = x - hidden
        pairs = 1 - torch.cos(off.unsqueeze(-1) - off.unsqueeze(-2))
        return (coupling * pairs).sum((-1, -2)) + _FIELD * (1 - torch.cos(off)).sum(-1)

    return Posed("phases", space, Identity(space), value, (hidden, coupling), 0.0, hidden)


def portfolio(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """2 pᵀCp − μᵀp: risk and return of proportions, convex, with many of them 0 at the optimum; seeds permute."""
    simplex = _whole("portfolio", space, latent_dim, Simplex)
    rng, count = generator(CONSTANTS), simplex.n + 1
    factors = torch.randn(count, 5, generator=rng, dtype=torch.float64)
    own = 0.1 + torch.rand(count, generator=rng, dtype=torch.float64)
    risk, gain = factors @ factors.mT / 5 + own.diag(), torch.rand(count, generator=rng, dtype=torch.float64)
    first, drawn = (torch.randperm(count, generator=generator(of)) for of in (0, seed))
    order = drawn[first.argsort()]  # as it is for seed 0, whose optimum is stored

    def value(x: Tensor, risk: Tensor, gain: Tensor) -> Tensor:
        return _AVERSION * ((x @ risk) * x).sum(-1) - x @ gain

    constants = (risk[order][:, order], gain[order])
    posed = with_best_known(Posed("portfolio", space, Identity(space), value, constants, math.nan, None))
    return _turned(posed, torch.eye(count, dtype=torch.float64)[order].mT)


def registration(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """A body's twelve marks, stretched, turned and moved onto what was measured: mean |R(q) diag(s) a + t − b|²."""
    product = _whole("registration", space, latent_dim, Product)
    if [type(factor) for factor in product.factors] != [Quaternion, Box] or product.factors[1].dim != 6:
        raise ArgumentError(f"The problem 'registration' needs Quaternion() and a Box of six, got {space}.")
    marks = torch.randn(_MARKS, 3, generator=generator(CONSTANTS), dtype=torch.float64)
    truth = product.random(rng=generator(seed))

    def placed(x: Tensor, marks: Tensor) -> Tensor:
        turn, (shift, stretch) = product.split(x)[0], product.split(x)[1].split(3, -1)
        return (stretch.unsqueeze(-2) * marks) @ _rotation(turn).mT + shift.unsqueeze(-2)

    def value(x: Tensor, marks: Tensor, measured: Tensor) -> Tensor:
        return (placed(x, marks) - measured).square().sum(-1).mean(-1)

    constants = (marks, placed(truth, marks))
    return Posed("registration", space, Identity(space), value, constants, 0.0, truth)


def _rotation(q: Tensor) -> Tensor:
    """The rotation matrices (…, 3, 3) of unit quaternions (…, 4), the real part first."""
    w, x, y, z = q.unbind(-1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def stiffness_seen_twice(space: Space, latent_dim: int | None, seed: int) -> Posed:
    """Σ |R_k X R_kᵀ − M_k|²: one stiffness seen in two unknown frames."""
    product = _whole("stiffness-seen-twice", space, latent_dim, Product)
    if [type(factor) for factor in product.factors] != [Rotation, Rotation, SPD]:
        raise ArgumentError(f"The problem 'stiffness-seen-twice' needs two Rotation(3) and one SPD(3), got {space}.")
    truth = product.random(rng=generator(seed))

    def seen(x: Tensor) -> Tensor:
        first, second, stiffness = product.split(x)
        return torch.stack([turn @ stiffness @ turn.mT for turn in (first, second)], -3)

    def value(x: Tensor, measured: Tensor) -> Tensor:
        return (seen(x) - measured).square().sum((-1, -2, -3))

    return Posed("stiffness-seen-twice", space, Identity(space), value, (seen(truth),), 0.0, truth)


def _whole(name: str, space: Space, latent_dim: int | None, kind: type[M]) -> M:
    """The space, if it is of a kind and nothing is hidden in it."""
    if isinstance(space, kind) and latent_dim is None:
        return space
    raise ArgumentError(
        f"The problem {name!r} is defined on a whole {kind.__name__}, got {space} and latent_dim={latent_dim}."
    )


MODELLING: dict[str, Builder] = {
    "rayleigh-quotient": rayleigh_quotient,
    "von-mises-fisher": von_mises_fisher,
    "wishart": wishart,
    "thomson": thomson,
    "phases": phases,
    "portfolio": portfolio,
    "registration": registration,
    "stiffness-seen-twice": stiffness_seen_twice,
}
