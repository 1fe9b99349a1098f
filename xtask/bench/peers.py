"""One measurement of one peer in one process: `peers.py WHAT TOOL [NUMBERS]`.

Prints one JSON object with the answer, the median CPU seconds (`time.process_time`; imports
are not counted) and the peak memory. `cargo xtask bench` calls it once a measurement, so that
a peer that fails, hangs or fills the memory spoils its own row only.
"""

import json
import math
import os
import resource
import statistics
import sys
import time

# One thread, as Dosimeter has in this comparison.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np


def measure(call, repetitions):
    """The answer and the median CPU seconds of some calls."""
    seconds = []
    answer = None
    for _ in range(repetitions):
        start = time.process_time()
        answer = call()
        seconds.append(time.process_time() - start)
    return {"value": answer, "cpu_s": statistics.median(seconds), "n": repetitions}


# --- epsilon of a composed run ------------------------------------------------------------


def dp_event(sigma, rate):
    import dp_accounting

    return dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))


def epsilon_call(tool, sigma, rate, steps, delta):
    if tool == "pld":
        from dp_accounting.pld import PLDAccountant

        return lambda: float(
            PLDAccountant().compose(dp_event(sigma, rate), steps).get_epsilon(delta)
        )
    if tool == "rdp":
        from dp_accounting.rdp import RdpAccountant

        return lambda: float(
            RdpAccountant().compose(dp_event(sigma, rate), steps).get_epsilon(delta)
        )
    if tool == "prv":
        from prv_accountant.dpsgd import DPSGDAccountant

        def upper_end():
            accountant = DPSGDAccountant(
                noise_multiplier=sigma,
                sampling_probability=rate,
                max_steps=steps,
                eps_error=0.1,
                delta_error=delta / 1000,
            )
            return float(accountant.compute_epsilon(delta, steps)[2])

        return upper_end
    raise ValueError(f"no epsilon by {tool}")


def epsilon(tool, sigma, rate, steps, delta, repetitions="3"):
    call = epsilon_call(tool, float(sigma), float(rate), int(float(steps)), float(delta))
    return measure(call, int(repetitions))


# --- noise for (epsilon, delta) ------------------------------------------------------------


def calibrate(tool, epsilon_target, delta, rate, steps, repetitions="1"):
    epsilon_target, delta, rate = float(epsilon_target), float(delta), float(rate)
    steps = int(float(steps))
    if tool in ("pld", "rdp"):
        import dp_accounting
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        accountant = PLDAccountant if tool == "pld" else RdpAccountant

        def call():
            return float(
                dp_accounting.calibrate_dp_mechanism(
                    accountant,
                    lambda sigma: dp_accounting.SelfComposedDpEvent(dp_event(sigma, rate), steps),
                    epsilon_target,
                    delta,
                    bracket_interval=dp_accounting.LowerEndpointAndGuess(0.2, 1.0),
                    tol=1e-3,
                )
            )

    elif tool == "prv":
        from prv_accountant.dpsgd import find_noise_multiplier

        def call():
            return float(
                find_noise_multiplier(rate, steps, epsilon_target, delta, eps_error=0.1)
            )

    else:
        raise ValueError(f"no calibration by {tool}")
    return measure(call, int(repetitions))


# --- a sweep -------------------------------------------------------------------------------


def sweep(tool, steps, delta, cells="8"):
    """A sample of the 20 x 20 grid, spread over its diagonal; the rest is extrapolated."""
    steps, delta, cells = int(float(steps)), float(delta), int(cells)
    sigmas = np.geomspace(0.6, 5.0, 20)
    rates = np.geomspace(1e-3, 0.1, 20)
    # Odd stride through the columns: every part of the grid is met.
    chosen = [(i * 20 // cells + 20 // (2 * cells), (i * 7 + 3) % 20) for i in range(cells)]
    calls = [epsilon_call(tool, sigmas[i], rates[j], steps, delta) for i, j in chosen]
    result = measure(lambda: [call() for call in calls], 1)
    result["cells"] = [[int(i), int(j)] for i, j in chosen]
    result["sample_cpu_s"] = result["cpu_s"]
    result["cpu_s"] *= 400 / cells
    return result


# --- the trade-off curve -------------------------------------------------------------------


def composed_pld(sigma, rate, steps):
    from dp_accounting.pld import privacy_loss_distribution

    one = privacy_loss_distribution.from_gaussian_mechanism(sigma, sampling_prob=rate)
    return one.self_compose(steps)


def tpr(tool, sigma, rate, steps, fpr, repetitions="3"):
    sigma, rate, fpr = float(sigma), float(rate), float(fpr)
    steps = int(float(steps))
    if tool == "riskcal":
        from riskcal.analysis import get_beta_from_pld

        def call():
            return 1 - float(get_beta_from_pld(composed_pld(sigma, rate, steps), alpha=fpr))

    elif tool == "gdpnum":
        from gdpnum import PLDConverter

        def call():
            beta = PLDConverter(composed_pld(sigma, rate, steps)).get_beta(np.array([fpr]))
            return 1 - float(np.asarray(beta).ravel()[0])

    else:
        raise ValueError(f"no trade-off curve by {tool}")
    return measure(call, int(repetitions))


# --- the last-iterate heuristic --------------------------------------------------------------


class AppendixProcedure:
    """The procedure of Steinke et al. (2025), Appendix A, written anew from its description.

    The pair is Binomial(T, q) + N(0, T sigma^2) against N(0, T sigma^2). Every evaluation of
    the log-likelihood ratio is a sum over all T + 1 terms in log space; the threshold y with
    ratio(y) = epsilon is found by bisection, the epsilon by another bisection around it, and
    both stop at an absolute error of 1e-9. The upper end of epsilon grows by 1. The published
    listing sums in a Python loop and carries the binomial coefficient along; so does this.
    """

    TOLERANCE = 1e-9

    def __init__(self, sigma, rate, steps):
        self.rate, self.steps = rate, steps
        self.variance = steps * sigma * sigma

    def log_sum(self, exponent):
        """ln of the sum over k of binomial weight times e^exponent(k)."""
        log_rate, log_rest = math.log(self.rate), math.log1p(-self.rate)
        total, log_choose = -math.inf, 0.0
        steps = self.steps
        for k in range(steps + 1):
            term = log_choose + k * log_rate + (steps - k) * log_rest + exponent(k)
            high, low = (total, term) if total > term else (term, total)
            total = high + math.log1p(math.exp(low - high)) if low > -math.inf else high
            if k < steps:
                log_choose += math.log((steps - k) / (k + 1))
        return total

    def ratio(self, y):
        double = 2 * self.variance
        return self.log_sum(lambda k: k * (2 * y - k) / double)

    def weighted_tail(self, y, sign):
        """Probability of the mixture beyond y (sign +1) or below it (-1)."""
        scale = math.sqrt(2 * self.variance)

        def log_tail(k):
            tail = 0.5 * math.erfc(sign * (y - k) / scale)
            return math.log(tail) if tail > 0 else -math.inf

        return math.exp(self.log_sum(log_tail))

    def threshold(self, level):
        low, high = -1.0, 1.0
        while self.ratio(low) > level:
            low *= 2
            if low < -1e12:
                return None
        while self.ratio(high) < level:
            high *= 2
        while True:
            middle = (low + high) / 2
            error = self.ratio(middle) - level
            if abs(error) <= self.TOLERANCE or high - low < 1e-15 * abs(middle):
                return middle
            low, high = (low, middle) if error > 0 else (middle, high)

    def delta(self, epsilon, sign):
        """One direction: sign +1 is P against Q, -1 is Q against P."""
        y = self.threshold(sign * epsilon)
        if y is None:
            return 0.0
        noise = 0.5 * math.erfc(sign * y / math.sqrt(2 * self.variance))
        mixture = self.weighted_tail(y, sign)
        if sign > 0:
            return mixture - math.exp(epsilon) * noise
        return noise - math.exp(epsilon) * mixture

    def epsilon(self, target):
        """The answer and how many one-sided deltas it took."""
        low, high, evaluations = 0.0, 1.0, 0

        def error(epsilon):
            nonlocal evaluations
            evaluations += 2
            return max(self.delta(epsilon, 1), self.delta(epsilon, -1)) - target

        while error(high) > 0:
            high += 1.0
        while True:
            middle = (low + high) / 2
            off = error(middle)
            if abs(off) <= self.TOLERANCE or high - low < 1e-14:
                return middle, evaluations
            low, high = (middle, high) if off > 0 else (low, middle)


class VectorisedProcedure(AppendixProcedure):
    """The same procedure with each sum over k done by NumPy: what a careful user would write."""

    def __init__(self, sigma, rate, steps):
        super().__init__(sigma, rate, steps)
        from scipy.special import gammaln, ndtr

        self.cdf = ndtr
        self.count = np.arange(steps + 1, dtype=float)
        self.log_weight = (
            gammaln(steps + 1)
            - gammaln(self.count + 1)
            - gammaln(steps - self.count + 1)
            + self.count * math.log(rate)
            + (steps - self.count) * math.log1p(-rate)
        )
        self.weight = np.exp(self.log_weight)

    def ratio(self, y):
        terms = self.log_weight + self.count * (2 * y - self.count) / (2 * self.variance)
        largest = terms.max()
        return largest + math.log(np.exp(terms - largest).sum())

    def weighted_tail(self, y, sign):
        return float(self.weight @ self.cdf(sign * (self.count - y) / math.sqrt(self.variance)))


def heuristic(tool, sigma, rate, steps, delta):
    sigma, rate, delta = float(sigma), float(rate), float(delta)
    steps = int(float(steps))
    if tool == "vectorised":
        procedure = VectorisedProcedure(sigma, rate, steps)
        result = measure(lambda: procedure.epsilon(delta), 1)
        result["value"], result["evaluations"] = result["value"]
        return result
    if tool == "appendix":
        # The answer and the count of one-sided deltas come from the vectorised twin; the cost
        # is one one-sided delta of the loop at that answer, times the count.
        value, evaluations = VectorisedProcedure(sigma, rate, steps).epsilon(delta)
        procedure = AppendixProcedure(sigma, rate, steps)
        one = measure(lambda: procedure.delta(value, 1), 1)
        return {
            "value": value,
            "one_delta_cpu_s": one["cpu_s"],
            "evaluations": evaluations,
            "cpu_s": one["cpu_s"] * evaluations,
            "n": 1,
        }
    if tool == "mixture":
        from dp_accounting.dp_event import MixtureOfGaussiansDpEvent
        from dp_accounting.pld import PLDAccountant
        from scipy.stats import binom

        counts = np.arange(steps + 1)
        weights = binom.pmf(counts, steps, rate)
        kept = weights > 1e-15
        event = MixtureOfGaussiansDpEvent(
            sigma * math.sqrt(steps),
            counts[kept].tolist(),
            (weights[kept] / weights[kept].sum()).tolist(),
        )
        return measure(lambda: float(PLDAccountant().compose(event).get_epsilon(delta)), 1)
    raise ValueError(f"no heuristic by {tool}")


def game(name, sigma, rate, steps, trials):
    """The linear game, the encoding loss of P3 or the analog repeaters of P4, trials as arrays."""
    import numpy as np

    sigma, rate, steps, trials = float(sigma), float(rate), int(float(steps)), int(float(trials))
    rng = np.random.default_rng(1)

    def linear(count, canary):
        model = np.zeros(count)
        for _ in range(steps):
            model += sigma * rng.standard_normal(count)
            if canary:
                model += rng.random(count) < rate
        return model

    def our_loss(count, canary):
        spacing, resolution, records = 11.0, 0.0066, 10**9
        batch = rate * records

        def evidence(v):
            return np.log1p(rate * np.expm1((2 * v - 1) / (2 * sigma**2)))

        theta = np.zeros(count)
        for step in range(steps):
            if step:
                v = theta - spacing * np.round(theta / spacing)
                moved = spacing * np.round(evidence(v) / resolution) - v
                theta += moved * (rng.binomial(records, rate, count) / batch)
            if canary:
                theta += rng.random(count) < rate
            theta += sigma * rng.standard_normal(count)
        cells = np.round(theta / spacing)
        return resolution * cells + evidence(theta - spacing * cells)

    def repeaters(count, canary):
        gain = 20 * np.sqrt(steps)
        largest = gain * (1 + 5 * sigma)
        expected = np.ceil(12 * np.sqrt(steps * sigma**2 + largest**2))
        records = int(np.ceil(expected / rate))
        model = np.zeros((count, steps))
        for step in range(steps):
            share = (rng.binomial(records, rate, count) / (records * rate))[:, None]
            if step:
                model[:, step - 1 : step] *= 1 + (gain - 1) * share
            model[:, step:] *= 1 - share
            if canary:
                model[:, step] += rng.random(count) < rate
            model += sigma * rng.standard_normal((count, steps))
        model[:, :-1] /= gain
        return np.log1p(rate * np.expm1((2 * model - 1) / (2 * sigma**2))).sum(axis=1)

    play = {"linear": linear, "our-loss": our_loss, "repeaters": repeaters}[name]
    batch = 1000 if name == "repeaters" else 10000
    start = time.perf_counter()
    for canary in (True, False):
        for first in range(0, trials, batch):
            play(min(batch, trials - first), canary)
    return {"wall_s": time.perf_counter() - start}


def security(tool, sigma, rate, steps):
    """Bayes security, 1 - delta(0): adding or removing a record by the lattice accountant, the
    published closed form (replacing a record) as its authors call it."""
    sigma, rate, steps = float(sigma), float(rate), int(float(steps))
    if tool == "pld":
        from dp_accounting.pld import PLDAccountant

        def call():
            accountant = PLDAccountant().compose(dp_event(sigma, rate), steps)
            return 1.0 - float(accountant.get_delta(0.0))

        return measure(call, 3)
    if tool.startswith("pld-"):
        from dp_accounting.pld import privacy_loss_distribution

        interval = float(tool.removeprefix("pld-"))

        def fine():
            one = privacy_loss_distribution.from_gaussian_mechanism(
                sigma, sampling_prob=rate, value_discretization_interval=interval
            )
            return 1.0 - float(one.self_compose(steps).get_delta_for_epsilon(0.0))

        return measure(fine, 3)
    if tool == "closed-form":
        from scipy.special import erf

        def many():
            for _ in range(10000):
                value = 1.0 - erf(rate * np.sqrt(steps) / (np.sqrt(2.0) * sigma))
            return float(value)

        found = measure(many, 5)
        found["cpu_s"] /= 10000
        return found
    raise ValueError(f"no Bayes security by {tool}")


def batches(tool, sigma, records, batch, steps, delta, largest="0"):
    """Epsilon of other ways to draw batches: fixed size (replacing a record), truncated Poisson
    (zeroing one out), balls and bins (the upper end of the range that its author's package gives)."""
    sigma, delta = float(sigma), float(delta)
    records, batch, steps = int(float(records)), int(float(batch)), int(float(steps))
    if tool in ("fixed-size", "truncated-poisson"):
        import dp_accounting
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant

        if tool == "fixed-size":
            replace = dp_accounting.NeighboringRelation.REPLACE_ONE
            # It counts noise in units of the distance between replaced records, which is 2.
            gaussian = dp_accounting.GaussianDpEvent(sigma / 2)
            event = dp_accounting.SampledWithoutReplacementDpEvent(records, batch, gaussian)
            accountant = lambda: RdpAccountant(neighboring_relation=replace)
        else:
            event = dp_accounting.TruncatedSubsampledGaussianDpEvent(
                records, batch / records, int(float(largest)), sigma
            )
            accountant = PLDAccountant
        return measure(lambda: float(accountant().compose(event, steps).get_epsilon(delta)), 3)
    if tool == "balls-and-bins":
        from PLD_accounting import gaussian_allocation_epsilon_range

        each = records // batch

        def call():
            upper, lower = gaussian_allocation_epsilon_range(
                delta=delta, sigma=sigma, num_steps=each, num_epochs=steps // each
            )
            return float(upper), float(lower)

        result = measure(call, 3)
        result["value"], result["lower"] = result["value"]
        return result
    raise ValueError(f"no batches by {tool}")


def versions(_tool="all"):
    from importlib.metadata import version

    names = ["dp-accounting", "prv-accountant", "riskcal", "gdpnum", "PLD_accounting", "numpy", "scipy"]
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except Exception:
            found[name] = None
    found["python"] = sys.version.split()[0]
    return found


COMMANDS = {
    "epsilon": epsilon,
    "calibrate": calibrate,
    "sweep": sweep,
    "tpr": tpr,
    "heuristic": heuristic,
    "game": game,
    "security": security,
    "batches": batches,
    "versions": versions,
}

if __name__ == "__main__":
    # Anything a peer prints goes to stderr: stdout carries the answer.
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    result = COMMANDS[sys.argv[1]](*sys.argv[2:])
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump(result, answer_to)
    answer_to.write("\n")
