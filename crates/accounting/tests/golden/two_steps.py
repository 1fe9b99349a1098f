"""Reference deltas for two Poisson-sampled steps, in high precision.

delta_1 is closed form; composing one more step is one integral:
  delta_2(e) = E_{x ~ P} delta_1(e - log(P/Q)(x)),   P = (1-q) N(0, s^2) + q N(1, s^2).
Gauss-Legendre with 24 nodes on panels of a quarter of s, halved again and again towards the
place where delta_1 changes its form; a second pass with 32 nodes on panels of s/6 must agree.
Prints CSV: sigma, q, steps, epsilon, delta. Needs mpmath (written with 1.3). Minutes.
Usage: python two_steps.py > two_steps.csv
"""
from mpmath import mp, mpf, exp, log, erfc, sqrt, nstr, pi, expm1, log1p

mp.dps = 34


def gauss(n):
    """Nodes and weights on [-1, 1], by Newton on the recurrence."""
    out = []
    for k in range(1, n + 1):
        x = mp.cos(pi * (k - mpf(1) / 4) / (n + mpf(1) / 2))
        for _ in range(8):
            a, b = mpf(1), x
            for m in range(2, n + 1):
                a, b = b, ((2 * m - 1) * x * b - (m - 1) * a) / m
            slope = n * (x * b - a) / (x * x - 1)
            x -= b / slope
        out.append((x, 2 / ((1 - x * x) * slope**2)))
    return out


RULES = [(gauss(24), 4), (gauss(32), 6)]


def upper(x):
    return erfc(x / sqrt(mpf(2))) / 2


def loss(x, s, q):
    return log1p(q * expm1((x - mpf(1) / 2) / s**2))


def one(e, s, q):
    w = expm1(e) + q
    if w <= 0:
        return -expm1(e)
    x = s**2 * log(w / q) + mpf(1) / 2
    return (1 - q) * upper(x / s) + q * upper((x - 1) / s) - exp(e) * upper(x / s)


def two(e, s, q, rule, parts):
    panel = s / parts
    kink = s**2 * log((expm1(e - log1p(-q)) + q) / q) + mpf(1) / 2
    low, high = -26 * s, max(26 * s, kink + 12 * s) + 1
    cuts = {low + k * panel for k in range(int((high - low) / panel) + 2)}
    cuts = {x for x in cuts if abs(x - kink) > panel}
    cuts |= {kink} | {kink + sign * panel / 2**k for k in range(70) for sign in (-1, 1)}
    cuts = sorted(cuts)
    total = mpf(0)
    for a, b in zip(cuts, cuts[1:]):
        middle, half = (a + b) / 2, (b - a) / 2
        for node, weight in rule:
            x = middle + half * node
            density = exp(-((x / s) ** 2) / 2) * (1 + q * expm1((x - mpf(1) / 2) / s**2))
            total += half * weight * density * one(e - loss(x, s, q), s, q)
    return total / (s * sqrt(2 * pi))


def row(s, q, e):
    first, second = (two(e, mpf(s), mpf(q), rule, parts) for rule, parts in RULES)
    assert abs(first / second - 1) < mpf("1e-20"), (s, q, e, first, second)
    if first > mpf("1e-100"):
        print(f"{s},{q},2,{nstr(e, 17)},{nstr(first, 22)}", flush=True)


def main():
    print("sigma,q,steps,epsilon,delta")
    for s in ["0.5", "1", "2", "4", "8"]:
        for q in ["1e-6", "1e-4", "1e-2"]:
            s_, q_ = mpf(s), mpf(q)
            # Thresholds beyond the loss of a jump of d standard deviations.
            for d in [3, 6, 10, 14, 19]:
                e = mpf(nstr(loss(d * s_, s_, q_) * mpf("1.3"), 5))
                if e <= 0:
                    continue
                row(s, q, e)
    # Where losses pile up: a rarely used record, little noise, epsilon near 0.
    for s, q in [("0.2", "1e-7"), ("0.2", "1e-4"), ("0.3", "1e-6"), ("0.5", "1e-5")]:
        for e in [mpf(0), mpf(q), 10 * mpf(q), mpf("1e-3")]:
            row(s, q, e)
    # A run that was once refused.
    for e in ["0.0001", "0.05", "2.4", "10"]:
        row("0.3874", "8.07e-6", mpf(e))


main()
