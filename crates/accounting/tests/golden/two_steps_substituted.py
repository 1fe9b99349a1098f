"""Reference deltas for two Poisson-sampled steps and one record replaced, in high precision.

P = (1-q) N(0, s^2) + q N(1, s^2) against Q = (1-q) N(0, s^2) + q N(-1, s^2). log(P/Q) takes every
value once, so delta of one step is closed form, smooth for large q, and
  delta_2(e) = E_{x ~ P} delta_1(e - log(P/Q)(x))
is an integral of an analytic function over the line: a sum with step s/24 (or s^2/48), which a sum
with a step half as long again must confirm. Prints CSV: sigma, q, epsilon, delta. Needs mpmath (written with 1.3). A minute.
Usage: python two_steps_substituted.py > two_steps_substituted.csv
"""
from mpmath import mp, mpf, erfc, exp, log, nstr, pi, sqrt

mp.dps = 34

CASES = """
10 0.99 5      10 0.99 3      10 0.99 0.5
10 0.9 5       10 0.9 4       10 0.9 2      10 0.9 0.3
100 0.9999 0.4 100 0.9999 0.1 100 0.6 0.2
30 0.9999999 1 30 0.9999999 0.2
10 0.999 3     3 0.7 6        3 0.7 2       3 0.7 0.2
1 0.9 12       1 0.9 4        1 0.99 20     1 0.99 1
0.5 0.9 30     0.5 0.9 10     0.3 0.99 40   2 0.8 9
"""


def upper(z):
    return erfc(z / sqrt(mpf(2))) / 2


def density(x, centre, s):
    return exp(-(((x - centre) / s) ** 2) / 2) / (s * sqrt(2 * pi))


def one(e, s, q):
    """delta of one step: P/Q = e^e is a quadratic equation in e^{x/s^2}."""
    a = q * exp(-1 / (2 * s * s))
    b = (1 - q) * (1 - exp(e))
    root = sqrt(b * b + 4 * a * a * exp(e))
    z = (root - b) / (2 * a) if b < 0 else 2 * a * exp(e) / (root + b)
    x = s * s * log(z)
    p = (1 - q) * upper(x / s) + q * upper((x - 1) / s)
    return p - exp(e) * ((1 - q) * upper(x / s) + q * upper((x + 1) / s))


def two(e, s, q, parts):
    step = min(s, s * s / 2) / parts
    total = mpf(0)
    reach = int((32 * s + 2) / step)
    for k in range(-reach, reach + 1):
        x = k * step
        p = (1 - q) + q * exp((2 * x - 1) / (2 * s * s))
        loss = log(p / ((1 - q) + q * exp((-2 * x - 1) / (2 * s * s))))
        total += p * density(x, 0, s) * one(e - loss, s, q)
    return total * step


if __name__ == "__main__":
    print("# Two Poisson-sampled steps, one record replaced: delta by one integral of the closed form of")
    print("# a single step, in 34-digit arithmetic (mpmath), by two_steps_substituted.py beside this file.")
    print("sigma,q,epsilon,delta")
    cells = CASES.split()
    for s, q, e in zip(cells[::3], cells[1::3], cells[2::3]):
        found = [two(mpf(e), mpf(s), mpf(q), parts) for parts in (24, 16)]
        assert abs(found[0] / found[1] - 1) < mpf(10) ** -17, (s, q, e, found)
        print(f"{s},{q},{e},{nstr(found[0], 22)}", flush=True)
