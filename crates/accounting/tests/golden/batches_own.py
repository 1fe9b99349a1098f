"""Reference values for ways to draw batches that `batches.csv` has no row for, each by two routes.

Route 1 is an integral: of the transform of the privacy loss along a line (composed steps), of the
transform of the ratio of densities (one epoch of balls and bins), or a closed form. Route 2 is a
lattice: the loss is spread on a grid, keeping mass and mean of every particle, composed by FFT, and
extrapolated from three spacings (Richardson). The digits kept are those on which both agree. Several
epochs of balls and bins have the density of the ratio in place of a transform: it is smooth, so that sums over
grids converge faster than any power of the spacing.

The value of a row is what the proven bound (or the exact pair) evaluates to; `lower` is what a data set
attains. Prints the rows as batches_own.csv has them. Needs NumPy, SciPy and mpmath; a few minutes.
Usage: python batches_own.py > batches_own.csv (or one part of the rows: integrals, epochs)
"""

import math
import sys

import mpmath
import numpy as np
from scipy.optimize import brentq
from scipy.special import erfc

mpmath.mp.dps = 30


# --- pairs -------------------------------------------------------------------------------------


class Mixture:
    """(sum of p_j N(j d)) against N(0, sigma^2) or, with `mirrored`, against (sum of p_j N(-j d))."""

    def __init__(self, sigma, shares, distance=1.0, mirrored=False):
        self.sigma, self.shares, self.mirrored = sigma, shares, mirrored
        self.centres = [j * distance / sigma for j, _ in shares]

    def particles(self, count):
        """Places x, P mass, Q mass."""
        reach = 9.5 + max(self.centres)
        x = np.linspace(-reach, reach, count)
        weight = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        side = lambda sign: sum(
            p * np.exp(sign * c * x - c * c / 2) for c, (_, p) in zip(self.centres, self.shares)
        )
        p = side(1) * weight
        q = side(-1) * weight if self.mirrored else weight
        return p, q

    def transform(self, s, count=1001):
        p, q = self.particles(count)
        keep = (p > 0) & (q > 0)
        loss = np.log(p[keep] / q[keep])
        return np.exp(np.multiply.outer(s, loss)) @ q[keep]

    atom = 0.0


class Turned(Mixture):
    """(1-q) N(0) + q N(2) against (1-q) N(0) + q N(1): a record in batches of fixed size that is zeroed out while all
    others are opposed to it."""

    def __init__(self, sigma, rate):
        self.sigma, self.rate = sigma, rate

    def particles(self, count):
        shift = 1 / self.sigma
        x = np.linspace(-9.5 - 2 * shift, 9.5 + 2 * shift, count)
        weight = np.exp(-x * x / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
        side = lambda m: (1 + self.rate * np.expm1(m * x - m * m / 2)) * weight
        return side(2 * shift), side(shift)


class Symmetric:
    """The profile of batches of fixed size: W = 1 - q + q exp(mu x - mu^2/2) for x > mu/2, its mirror
    image, and an atom at loss 0 (substitution and zeroing out)."""

    def __init__(self, sigma, shares):
        self.rate = sum(p for _, p in shares)
        self.parts = [(p / self.rate, 2 * j / sigma) for j, p in shares]
        self.atom = (1 - self.rate) * sum(
            share * (1 - erfc(mu / 2 / math.sqrt(2))) for share, mu in self.parts
        )

    def half(self, share, mu, count):
        """Gauss panels on x > mu/2: mass under Q and ln W."""
        nodes, weights = np.polynomial.legendre.leggauss(24)
        edges = np.linspace(mu / 2, mu / 2 + mu + 12, count)
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        x = (middle[:, None] + half[:, None] * nodes).ravel()
        mass = (half[:, None] * weights).ravel() * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        return share * mass, np.log1p(self.rate * np.expm1(mu * x - mu * mu / 2))

    def particles(self, count):
        p, q = [np.array([self.atom])], [np.array([self.atom])]
        for share, mu in self.parts:
            mass, loss = self.half(share, mu, max(2, count // 24))
            # The mirror image has P and Q exchanged.
            p += [mass * np.exp(loss), mass]
            q += [mass, mass * np.exp(loss)]
        return np.concatenate(p), np.concatenate(q)

    def transform(self, s, count=24):
        total = np.full(np.shape(s), self.atom, dtype=complex)
        for share, mu in self.parts:
            mass, loss = self.half(share, mu, count)
            total += np.exp(np.multiply.outer(s, loss)) @ mass
            total += np.exp(np.multiply.outer(1 - s, loss)) @ mass
        return total


# --- route 1: the inversion integral -----------------------------------------------------------


def by_contour(pair, steps, epsilon, order):
    """delta at epsilon > 0; order "remove" is E(W - e^eps)_+, "add" is E(1 - e^eps W)_+."""
    shift = (lambda s: (1 - s) * epsilon) if order == "remove" else (lambda s: s * epsilon)

    def exponent(c):
        k = pair.transform(np.array([c + 0j]))[0].real
        return steps * math.log(k) + shift(c) - math.log(abs(c * (c - 1)))

    grid = 1 + np.geomspace(0.02, 60, 60) if order == "remove" else -np.geomspace(0.02, 60, 60)
    c = min(grid, key=exponent)
    scale = math.exp(exponent(c))
    last, total = None, None
    # Halve the step of the trapezoid until nothing changes.
    for step in (0.1, 0.05):
        total, start = 0.0, 0.0
        while True:
            u = start + step * np.arange(256)
            s = c + 1j * u
            value = np.exp(steps * np.log(pair.transform(s)) + shift(s))
            # Together all atoms are an atom at loss 0, which has no part in delta at epsilon > 0.
            value = (value - pair.atom**steps * np.exp(shift(s))) / (s * (s - 1))
            terms = value.real
            terms[0] *= 0.5 if start == 0 else 1.0
            total += terms.sum() * step / math.pi
            start = u[-1] + step
            if np.abs(value[-32:]).max() < 1e-14 * scale or start > 4000:
                break
        if last is not None and abs(total - last) < 1e-12 * abs(total):
            break
        last = total
    return total


# --- route 2: the lattice ----------------------------------------------------------------------


def deposit(loss, mass, spacing, low, length):
    place = loss / spacing - low
    cell = np.floor(place).astype(int)
    share = place - cell
    grid = np.bincount(cell, mass * (1 - share), length)
    return grid + np.bincount(cell + 1, mass * share, length)[:length]


def lattice_law(losses, masses, steps, spacing):
    """The law of a sum of steps, on a grid: places and masses."""
    mean = (losses * masses).sum()
    spread = math.sqrt(max((losses**2 * masses).sum() - mean * mean, 0) * steps)
    low, high = losses.min(), losses.max()
    bottom = min(0.0, max(steps * low, steps * mean - 14 * spread - abs(low)) - 2)
    top = max(0.0, min(steps * high, steps * mean + 14 * spread + 3 * high) + 2)
    length = 1 << math.ceil(math.log2((top - bottom + high - low + 4) / spacing))
    start = math.floor(low / spacing)
    one = deposit(losses, masses, spacing, start, length)
    total = np.fft.irfft(np.fft.rfft(one) ** steps, length)
    # Places are steps * start + index, modulo the length.
    offset = math.floor(bottom / spacing)
    total = np.roll(total, steps * start - offset)
    return (offset + np.arange(length)) * spacing, total


def by_lattice(pair, steps, order, spacing):
    """delta as a function of epsilon."""
    p, q = pair.particles(1 << 20)
    keep = (p > 1e-300) & (q > 1e-300)
    p, q = p[keep], q[keep]
    loss = np.log(p / q)
    signed, mass = (loss, p) if order == "remove" else (-loss, q)
    return extrapolated([lattice_law(signed, mass, steps, spacing / 2**part) for part in range(3)])


def extrapolated(laws):
    def delta(epsilon):
        return richardson([
            (masses * -np.expm1(np.minimum(epsilon - places, 0))).sum() for places, masses in laws
        ])

    return delta


def richardson(found):
    once = [(4 * b - a) / 3 for a, b in zip(found, found[1:])]
    return (16 * once[1] - once[0]) / 15


# --- balls and bins ----------------------------------------------------------------------------


def ratio_transform(sigma, r, angle, count=6000):
    """phi(r e^{i angle}) = E exp(-theta Y) for Y = exp(g/sigma - 1/(2 sigma^2)), on a rotated line."""
    t = np.linspace(-12, 12, count)
    weight = np.exp(-t * t / 2) * (t[1] - t[0]) / math.sqrt(2 * math.pi)
    inner = np.exp(-np.multiply.outer(r, np.exp(t / sigma - 1 / (2 * sigma**2))))
    turn = np.exp(1j * np.multiply.outer(sigma * angle, t)) if np.ndim(angle) else np.exp(1j * sigma * angle * t)
    return np.exp(sigma**2 * np.asarray(angle) ** 2 / 2) * ((turn * inner) @ weight)


def one_epoch_by_transform(sigma, batches, epsilon, order):
    """E(K - W)_+ and from it both orders, W the mean of this many Y."""
    level = math.exp(epsilon) if order == "remove" else math.exp(-epsilon)
    a = batches * level
    c, step = 3.0 / a, 0.05 / a
    last = None
    for refine in range(2):
        eta = step / 2**refine
        total, start = 0.0, 0
        while True:
            u = eta * (start + np.arange(512))
            theta = c + 1j * u
            phi = ratio_transform(sigma, np.abs(theta), np.angle(theta), 1200)
            value = np.exp(theta * a) * phi**batches / theta**2
            terms = value.real
            if start == 0:
                terms[0] *= 0.5
            total += terms.sum() * eta / math.pi
            start += 512
            if np.abs(value[-64:]).max() < 1e-13 * abs(total) * eta or start > 400_000:
                break
        below = total / batches
        if last is not None and abs(below - last) < 1e-11 * below:
            break
        last = below
    # E(W - K)_+ = 1 - K + E(K - W)_+; E(1 - e^eps W)_+ = e^eps E(e^-eps - W)_+.
    return 1 - level + below if order == "remove" else below / level


def epoch_particles(sigma, batches, spacing):
    """The law of W over an epoch: places, and masses under Q, by FFT on a linear grid."""
    t = np.linspace(-9, 9 + 1 / sigma, 1 << 20)
    weight = np.exp(-t * t / 2) * (t[1] - t[0]) / math.sqrt(2 * math.pi)
    y = np.exp(t / sigma - 1 / (2 * sigma**2))
    keep = y < 4000
    top = y[keep].max() + 8 * batches
    length = 1 << math.ceil(math.log2(top / spacing))
    one = deposit(y[keep], weight[keep], spacing, 0, length)
    # Under P one of the terms is size-biased: all payoffs are then at most 1.
    biased = deposit(y[keep], (weight * y)[keep], spacing, 0, length)
    power = np.fft.rfft(one) ** (batches - 1) * np.fft.rfft(biased)
    masses = np.fft.irfft(power, length)
    return np.arange(length) * spacing / batches, masses


def balls_by_lattice(sigma, factors, order, spacing, loss_spacing):
    """delta as a function of epsilon; `factors` has (batches, times)."""
    laws = []
    for part in range(3):
        law = None
        for batches, times in factors:
            places, p = epoch_particles(sigma, batches, spacing / 2**part)
            keep = (places > 0) & (np.abs(p) > 1e-18)
            loss, p = np.log(places[keep]), p[keep]
            mass = p if order == "remove" else p * np.exp(-loss)
            signed = loss if order == "remove" else -loss
            at, masses = lattice_law(signed, mass, times, loss_spacing / 2**part)
            if law is None:
                law = (at, masses)
            else:
                start = law[0][0] + at[0]
                size = 1 << math.ceil(math.log2(len(at) + len(law[0])))
                both = np.fft.irfft(np.fft.rfft(law[1], size) * np.fft.rfft(masses, size), size)
                law = (start + np.arange(size) * (at[1] - at[0]), both)
        laws.append(law)
    return extrapolated(laws)


def interpolated(values, first, spacing, x, neighbours=12):
    """Polynomials through some neighbours on a uniform grid."""
    place = (x - first) / spacing
    start = np.clip(np.floor(place).astype(int) - neighbours // 2 + 1, 0, len(values) - neighbours)
    above, below = np.zeros_like(x), np.zeros_like(x)
    for k in range(neighbours):
        away = place - start - k
        part = (-1.0) ** k * math.comb(neighbours - 1, k) / np.where(np.abs(away) < 1e-9, 1e-9, away)
        above += part * values[start + k]
        below += part
    return above / below


def epoch_density(sigma, batches, losses, spacing=1e-3):
    """The density of ln W under P over an epoch, from that of the sum of its log-normal numbers."""
    top = math.exp((8 + 0.5 / sigma) / sigma) + 8 * batches
    length = 1 << math.ceil(math.log2(top / spacing))
    y = np.arange(1, length) * spacing
    normal = sigma * np.log(y) + 1 / (2 * sigma)
    one = np.concatenate([[0.0], sigma / y * np.exp(-normal * normal / 2) / math.sqrt(2 * math.pi)])
    biased = one * np.concatenate([[0.0], y])
    law = np.fft.irfft((np.fft.rfft(one) * spacing) ** (batches - 1) * np.fft.rfft(biased), length)
    place = batches * np.exp(losses)
    inside = place < y[-20]
    density = np.zeros_like(losses)
    density[inside] = interpolated(law, 0.0, spacing, place[inside]) * place[inside]
    return density


def balls_by_density(sigma, factors, order, low=-20.0, high=44.0, count=1 << 14):
    """delta as a function of epsilon; `factors` has (batches, times)."""
    step = (high - low) / count
    losses, zero = low + step * np.arange(count), round(-low / step)
    transform = 1.0
    for batches, times in factors:
        density = np.roll(epoch_density(sigma, batches, losses), -zero)
        transform = transform * (np.fft.rfft(density) * step) ** times
    density = np.roll(np.fft.irfft(transform, count) / step, zero)
    nodes, weights = np.polynomial.legendre.leggauss(16)

    def delta(epsilon):
        edges = epsilon + np.linspace(0, 14, 300) if order == "remove" else -epsilon - np.linspace(9, 0, 300)
        middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
        x, mass = (middle[:, None] + half[:, None] * nodes).ravel(), (half[:, None] * weights).ravel()
        payoff = -np.expm1(epsilon - x) if order == "remove" else -np.exp(-x) * np.expm1(epsilon + x)
        return (interpolated(density, low, step, x) * payoff * mass).sum()

    return delta


# --- epsilon -----------------------------------------------------------------------------------


def epsilon_of(delta_at, delta, low, high):
    return brentq(lambda e: math.log(max(delta_at(e), 1e-300) / delta), low, high, xtol=1e-12, rtol=1e-12)


def agreed(a, b):
    """The digits on which two numbers agree, at most 12."""
    if a == b:
        return 12
    return max(1, min(12, int(-math.log10(abs(a - b) / abs(a)) - 0.31)))


ROWS = []


def row(scheme, adjacency, parameters, quantity, at, value, other, source, lower=""):
    digits = agreed(value, other)
    text = ";".join(f"{key}={number}" for key, number in parameters.items())
    ROWS.append(f"{scheme},{adjacency},{text},{quantity},{at},{lower},,{value:.15g},{digits},{source}")
    print(ROWS[-1].rsplit(",", 1)[0], f"({other:.15g})", file=sys.stderr, flush=True)


def larger(pair, steps, delta, window, spacing=2e-3):
    """epsilon at delta, the larger order, by both routes."""
    best = None
    for order in ("remove", "add"):
        one = epsilon_of(lambda e: by_contour(pair, steps, e, order), delta, *window)
        two = epsilon_of(by_lattice(pair, steps, order, spacing), delta, *window)
        if best is None or one > best[0]:
            best = (one, two)
    return best


def composed(scheme, adjacency, parameters, pair, steps, delta, window, least=None):
    source = "inversion integral; lattice with Richardson"
    lower = ""
    if least is not None:
        # Cut to the digits on which both routes agree.
        one, two = larger(least, steps, delta, (window[0] / 5, window[1]), spacing=2.5e-4)
        lower = f"{one:.{agreed(one, two)}g}"
    found = larger(pair, steps, delta, window)
    row(scheme, adjacency, parameters, "epsilon", f"delta={delta:g}", *found, source, lower)


def by_integrals():
    # Cyclic Poisson: ceil(T/c) turns of a Poisson batch.
    for adjacency, mirrored in (("add-remove", False), ("zero-out", False), ("substitute", True)):
        pair = Mixture(1.0, [(0, 0.9), (1, 0.1)], mirrored=mirrored)
        parameters = {"noise_multiplier": 1.0, "sample_rate": 0.1, "steps": 995, "cycle_length": 10}
        composed("cyclic-poisson", adjacency, parameters, pair, 100, 1e-5, (2, 20))
    # Groups of Poisson batches: Binomial(k, q) of them are in a batch.
    for size, rate, steps, window in ((2, 0.01, 500, (0.05, 20)), (4, 0.005, 200, (0.05, 30))):
        shares = [(j, math.comb(size, j) * rate**j * (1 - rate) ** (size - j)) for j in range(size + 1)]
        for adjacency, mirrored in (("zero-out", False), ("substitute", True)):
            pair = Mixture(2.0, shares, mirrored=mirrored)
            parameters = {"noise_multiplier": 2.0, "sample_rate": rate, "steps": steps, "group_size": size}
            composed("poisson", adjacency, parameters, pair, steps, 1e-5, window)
    # Fixed size, zeroing out: the symmetric profile, and what data attain.
    for sigma, rate, steps, delta, window in (
        (1.0, 0.01, 1000, 1e-5, (2, 30)),
        (2.0, 0.01, 1000, 1e-5, (0.5, 8)),
        (3.0, 0.1, 200, 1e-6, (1, 20)),
    ):
        pair = Symmetric(sigma, [(1, rate)])
        parameters = {"noise_multiplier": sigma, "sample_rate": rate, "steps": steps}
        composed("fixed-size", "zero-out", parameters, pair, steps, delta, window, Turned(sigma, rate))
    # Groups of fixed-size batches, one step: the closed form, and the lattice.
    records, batch, size = 1000, 50, 3
    choose = lambda n, k: mpmath.binomial(n, k)
    shares = [
        (j, choose(size, j) * choose(records - size, batch - j) / choose(records, batch))
        for j in range(1, size + 1)
    ]
    rate = sum(p for _, p in shares)
    for epsilon in (0.5, 2.0):
        inner = mpmath.log1p(mpmath.expm1(epsilon) / rate)
        total = mpmath.mpf(0)
        for j, p in shares:
            mu = mpmath.mpf(2 * j)
            tail = lambda z: mpmath.erfc(z / mpmath.sqrt(2)) / 2
            total += p * (tail(inner / mu - mu / 2) - mpmath.exp(inner) * tail(inner / mu + mu / 2))
        pair = Symmetric(1.0, [(j, float(p)) for j, p in shares])
        other = by_lattice(pair, 1, "remove", 1e-3)(epsilon)
        parameters = {"noise_multiplier": 1.0, "dataset_size": records, "batch_size": batch, "steps": 1, "group_size": size}
        source = "closed form with mpmath; lattice with Richardson"
        row("fixed-size", "zero-out", parameters, "delta", f"epsilon={epsilon:g}", float(total), other, source)
    # Groups of shuffled batches: mu = k sqrt(E)/sigma in closed form, and by quadrature.
    parameters = {"noise_multiplier": 4.0, "batches_per_epoch": 50, "epochs": 4, "group_size": 3}
    mu = mpmath.mpf(3) * 2 / 4
    profile = lambda e: (mpmath.erfc((e / mu - mu / 2) / mpmath.sqrt(2)) - mpmath.exp(e) * mpmath.erfc((e / mu + mu / 2) / mpmath.sqrt(2))) / 2
    exact = float(mpmath.findroot(lambda e: profile(e) - mpmath.mpf("1e-5"), 7))
    gauss = Mixture(4.0, [(1, 1.0)], distance=3.0)
    other = epsilon_of(by_lattice(gauss, 4, "remove", 1e-3), 1e-5, 2, 20)
    row("shuffle-reshuffled", "zero-out", parameters, "epsilon", "delta=1e-05", exact, other, "closed form with mpmath; lattice with Richardson")
    # Balls and bins under adding and removing, one epoch, each order.
    for sigma, batches, epsilon in ((1.0, 10, 0.5), (1.0, 100, 0.3), (2.0, 20, 0.2)):
        for order in ("remove", "add"):
            one = one_epoch_by_transform(sigma, batches, epsilon, order)
            two = balls_by_lattice(sigma, [(batches, 1)], order, 0.02, 2e-3)(epsilon)
            parameters = {"noise_multiplier": sigma, "batches_per_epoch": batches, "epochs": 1, "order": order}
            row("balls-and-bins", "add-remove", parameters, "delta", f"epsilon={epsilon:g}", one, two, "transform of the ratio; lattice with Richardson")


def several_epochs():
    # Several epochs, and k of t: as many epochs of the parts.
    for sigma, batches, uses, epochs, window in ((1.0, 20, 1, 5, (0.3, 8)), (1.0, 20, 2, 3, (0.3, 8)), (2.0, 25, 3, 2, (0.1, 6))):
        small, more = batches // uses, batches % uses
        factors = [(small, epochs * (uses - more))] + ([(small + 1, epochs * more)] if more else [])
        one, two = max(
            (
                epsilon_of(balls_by_density(sigma, factors, order), 1e-5, *window),
                epsilon_of(balls_by_lattice(sigma, factors, order, 0.02, 2e-3), 1e-5, *window),
            )
            for order in ("remove", "add")
        )
        parameters = {"noise_multiplier": sigma, "batches_per_epoch": batches, "epochs": epochs, "uses_per_epoch": uses}
        source = "density of the ratio; lattice with Richardson"
        row("balls-and-bins", "add-remove", parameters, "epsilon", "delta=1e-05", one, two, source)


def in_order():
    # Batches in the order of the data: uses are certain, and their squared shifts add up. The second route
    # integrates the positive part of the difference of both densities.
    root = mpmath.sqrt(2)
    for adjacency, parameters, square in (
        ("zero-out", {"noise_multiplier": 2.0, "batches_per_epoch": 100, "steps": 350}, 4 / mpmath.mpf(4)),
        ("substitute", {"noise_multiplier": 4.0, "batches_per_epoch": 20, "epochs": 3}, 12 / mpmath.mpf(16)),
        # Four of six records fill the first batch, two are in the second; both batches come twice in 30 steps.
        ("zero-out", {"noise_multiplier": 8.0, "dataset_size": 100, "batch_size": 4, "group_size": 6, "steps": 30}, (2 * 16 + 2 * 4) / mpmath.mpf(64)),
        # Seven whole batches and a short one: the pair drops it, and 15 steps are three passes.
        ("zero-out", {"noise_multiplier": 3.0, "sample_rate": 0.13, "steps": 15}, 3 / mpmath.mpf(9)),
    ):
        mu = mpmath.sqrt(square)
        tail = lambda z: mpmath.erfc(z / root) / 2
        exact = lambda e: tail(e / mu - mu / 2) - mpmath.exp(e) * tail(e / mu + mu / 2)
        density = lambda x, m: mpmath.exp(-((x - m) ** 2) / 2) / mpmath.sqrt(2 * mpmath.pi)

        def integrated(e):
            start = e / mu + mu / 2
            places = [start + k for k in (0, 1, 2, 4, 8, 16, 32)]
            return mpmath.quad(lambda x: density(x, mu) - mpmath.exp(e) * density(x, 0), places)

        values = [mpmath.findroot(lambda e: mpmath.log(f(e) / mpmath.mpf("1e-5")), 4 * mu) for f in (exact, integrated)]
        row("in-order", adjacency, parameters, "epsilon", "delta=1e-05", *map(float, values), "closed form with mpmath; quadrature of the densities")


def main():
    parts = {"integrals": by_integrals, "epochs": several_epochs, "in-order": in_order}
    for name, part in parts.items():
        if len(sys.argv) < 2 or sys.argv[1] == name:
            part()
    print("# Ways to draw batches without a row in batches.csv; made by batches_own.py, by two routes each.")
    print("# Columns and spelling as in batches.csv; digits: those on which both routes agree.")
    print("scheme,adjacency,parameters,quantity,at,lower,upper,value,digits,source")
    print("\n".join(ROWS))



main()
