"""One measurement of one auditing peer: `audit_peers.py WHAT FILES…`.

Prints one JSON object: the answer, the CPU seconds of the import (`import_cpu_s`), of reading and
computing (`cpu_s`), and the peak memory. One process a measurement, so that a peer that fails,
hangs or fills the memory spoils its own row only.
"""

import json
import os
import resource
import statistics
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"


def imported(load):
    start = time.process_time()
    module = load()
    return module, time.process_time() - start


def numpy_and(load):
    def both():
        import numpy

        return numpy, load()

    return both


def jax_auditing():
    from jax_privacy import auditing

    return auditing


def read_npy(numpy, members, nonmembers):
    return numpy.load(members), numpy.load(nonmembers)


def read_csv(path):
    # The fastest reader that a user of these packages has installed already.
    import pandas

    table = pandas.read_csv(path)
    member = table["member"].to_numpy() == 1
    score = table["score"].to_numpy()
    return score[member], score[~member]


def timed(call, repetitions=1):
    seconds, answer = [], None
    for _ in range(repetitions):
        start = time.process_time()
        answer = call()
        seconds.append(time.process_time() - start)
    return {"value": answer, "cpu_s": statistics.median(seconds)}


def jax_npy(members, nonmembers):
    """File in, Clopper-Pearson bound out."""
    (numpy, auditing), cost = imported(numpy_and(jax_auditing))

    def call():
        auditor = auditing.CanaryScoreAuditor(*read_npy(numpy, members, nonmembers))
        return float(auditor.epsilon_clopper_pearson(significance=0.05, delta=1e-5))

    return timed(call) | {"import_cpu_s": cost}


def jax_csv(path):
    def load():
        import pandas

        return pandas, jax_auditing()

    (_, auditing), cost = imported(load)

    def call():
        auditor = auditing.CanaryScoreAuditor(*read_csv(path))
        return float(auditor.epsilon_clopper_pearson(significance=0.05, delta=1e-5))

    return timed(call) | {"import_cpu_s": cost}


def jax_call(method, members, nonmembers):
    """One estimator on arrays in memory, with the auditor's own sorting."""
    (numpy, auditing), cost = imported(numpy_and(jax_auditing))
    inside, outside = read_npy(numpy, members, nonmembers)

    def call():
        auditor = auditing.CanaryScoreAuditor(inside, outside)
        return float(getattr(auditor, method)(significance=0.05, delta=1e-5))

    return timed(call) | {"import_cpu_s": cost}


def estimates(method, members, nonmembers):
    """privacy-estimates at the threshold 1, all scores counted."""

    def load():
        from privacy_estimates import AttackResults, compute_eps_lo

        return AttackResults, compute_eps_lo

    (numpy, (results, lower)), cost = imported(numpy_and(load))
    inside, outside = read_npy(numpy, members, nonmembers)

    def call():
        tp, fp = int((inside >= 1.0).sum()), int((outside >= 1.0).sum())
        counts = results(FN=len(inside) - tp, FP=fp, TN=len(outside) - fp, TP=tp)
        return float(lower(counts, delta=1e-5, alpha=0.05, method=method))

    return timed(call) | {"import_cpu_s": cost}


def tensorflow(method, members, nonmembers):
    """tensorflow-empirical-privacy: the maximum over all thresholds, uncorrected."""

    def load():
        # The package's own import needs TensorFlow; the module itself does not.
        import importlib.util
        import sysconfig

        folder = sysconfig.get_paths()["purelib"] + "/tensorflow_privacy/privacy/privacy_tests/"
        where = importlib.util.spec_from_file_location("bound", folder + "epsilon_lower_bound.py")
        module = importlib.util.module_from_spec(where)
        # Its dataclasses look themselves up by name.
        sys.modules["bound"] = module
        where.loader.exec_module(module)
        return module

    (numpy, module), cost = imported(numpy_and(load))
    inside, outside = read_npy(numpy, members, nonmembers)

    def call():
        bound = module.EpsilonLowerBound(inside, outside, alpha=0.05, two_sided_threshold=True)
        return float(bound.compute_epsilon_lower_bound(module.BoundMethod[method], k=1)[0])

    return timed(call) | {"import_cpu_s": cost}


def one_run_epsilon(numpy, stats, m, r, v, delta, level):
    """The largest refuted epsilon by Theorem 5.2 of Steinke, Nasr and Jagielski (2023), which is what
    Privacy Meter computes for a number of guesses fixed beforehand. Written from the paper."""

    def p_value(epsilon):
        share = 1.0 / (1.0 + numpy.exp(-epsilon))
        at_least = stats.binom.sf(v - 1, r, share)
        if delta == 0.0 or v == 0:
            return at_least
        below = numpy.cumsum(stats.binom.pmf(numpy.arange(v - 1, -1, -1), r, share))
        return at_least + 2.0 * m * delta * (below / numpy.arange(1, v + 1)).max()

    low, high = 0.0, 1.0
    if p_value(low) > level:
        return 0.0
    while p_value(high) <= level:
        low, high = high, 2.0 * high
    while high - low > 1e-5:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if p_value(middle) <= level else (low, middle)
    return low


def tightness(kind, delta, threshold, scores, members):
    """The bounds of the valid peers on each data set of a setting."""
    import numpy
    from scipy import stats

    from jax_privacy import auditing
    from privacy_estimates import AttackResults, compute_eps_lo

    level, delta = 0.05, float(delta)
    found = {}

    def note(peer, value):
        found.setdefault(peer, []).append(float(value))

    for trial, (score, member) in enumerate(zip(numpy.load(scores), numpy.load(members))):
        inside, outside = score[member == 1], score[member == 0]
        auditor = auditing.CanaryScoreAuditor(inside, outside)
        split = auditing.Split(seed=trial)
        if kind == "runs":
            call = auditor.epsilon_clopper_pearson
            note("jax-privacy Bonferroni", call(level, delta, one_sided=False))
            note("jax-privacy Split", call(level, delta, one_sided=False, threshold_strategy=split))
        elif kind == "fixed":
            tp, fp = int((inside >= float(threshold)).sum()), int((outside >= float(threshold)).sum())
            counts = AttackResults(FN=len(inside) - tp, FP=fp, TN=len(outside) - fp, TP=tp)
            note("privacy-estimates", max(0.0, compute_eps_lo(counts, delta, level, "beta")))
        else:
            # It refuses delta 0; this one costs nothing.
            call, positive = auditor.epsilon_one_run, delta or 1e-12
            note("jax-privacy Bonferroni", call(level, positive))
            note("jax-privacy Split", call(level, positive, threshold_strategy=split))
            m = len(score)
            order = numpy.argsort(score, kind="stable")
            right = (member[order[: m // 4]] == 0).sum() + (member[order[-(m // 4) :]] == 1).sum()
            value = one_run_epsilon(numpy, stats, m, 2 * (m // 4), int(right), delta, level)
            note("Privacy Meter, m/4 guesses on each side", value)
    return {"bounds": found}


def shared_strength(numpy, draw, canaries):
    """Bits told by randomised response with one random strength for all: 1-Gaussian in every canary."""
    right = 1.0 / (1.0 + numpy.exp(-abs(draw.normal() + 0.5)))
    member = draw.random(canaries) < 0.5
    return (member == (draw.random(canaries) < right)).astype(float), member


def told_together(numpy, draw, canaries):
    """(1, 1e-3)-private in every canary: randomised response, and with probability 0.02 ten bits are told."""
    member = draw.random(canaries) < 0.5
    kept = draw.random(canaries) < 1.0 / (1.0 + numpy.exp(-1.0))
    score = (member == kept).astype(float)
    if draw.random() < 1e-3 * canaries / 10:
        told = draw.choice(canaries, 10, replace=False)
        score[told] = numpy.where(member[told], 2.0, -1.0)
    return score, member


def coverage(trials=300):
    """Shares of one-run bounds above the truth where canaries are correlated, and of true claims that a bound
    for a fixed size refutes when one looks after every fifty trials: lines of a CSV."""
    import numpy
    from scipy import stats

    from jax_privacy import auditing

    trials, level = int(trials), 0.05
    found = {}

    def note(setting, peer, value, truth):
        found.setdefault((setting, peer), []).append((value > truth + 1e-9, value))

    for setting, law, canaries, delta, truth in (
        ("shared strength", shared_strength, 1000, 1e-5, 4.377178095681),
        ("told together", told_together, 200, 1e-3, 1.0),
    ):
        for trial in range(trials):
            draw = numpy.random.default_rng([7, canaries, trial])
            score, member = law(numpy, draw, canaries)
            auditor = auditing.CanaryScoreAuditor(score[member], score[~member])
            split = auditing.Split(seed=trial)
            note(setting, "jax 2.0.0 one-run Bonferroni", auditor.epsilon_one_run(level, delta), truth)
            value = auditor.epsilon_one_run(level, delta, threshold_strategy=split)
            note(setting, "jax 2.0.0 one-run Split", value, truth)
            if setting == "shared strength":
                value = auditor.epsilon_one_run_fdp(level, delta)
                note(setting, "jax 2.0.0 one-run f-DP", value, truth)
            order = numpy.lexsort((draw.random(canaries), score))
            quarter = canaries // 4
            right = (~member[order[:quarter]]).sum() + member[order[-quarter:]].sum()
            value = one_run_epsilon(numpy, stats, canaries, 2 * quarter, int(right), delta, level)
            note(setting, "Privacy Meter, fixed number of guesses", value, truth)
    for trial in range(trials):
        draw = numpy.random.default_rng([8, trial])
        inside, outside = draw.normal(size=500), draw.normal(size=500)
        for peer, strategy in (
            ("jax 2.0.0 CP, fixed threshold", auditing.Explicit(1.0)),
            ("jax 2.0.0 CP Bonferroni(hull)", auditing.Bonferroni()),
        ):
            most = 0.0
            for size in range(25, 501, 25):
                auditor = auditing.CanaryScoreAuditor(inside[:size], outside[:size])
                call = auditor.epsilon_clopper_pearson
                most = max(most, call(level, one_sided=False, threshold_strategy=strategy))
            note("looks", peer, most, 0.0)
    for (setting, peer), values in found.items():
        share = sum(above for above, _ in values) / len(values)
        mean = sum(value for _, value in values) / len(values)
        print(f'"{setting}","{peer}",{len(values)},{share:.4f},{mean:.4f}')
    return {}


def versions():
    import importlib.metadata

    names = ("jax-privacy", "jax", "privacy-estimates", "tensorflow-empirical-privacy")
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    calls = {
        "jax-npy": jax_npy,
        "jax-csv": jax_csv,
        "jax-call": jax_call,
        "estimates": estimates,
        "tensorflow": tensorflow,
        "tightness": tightness,
        "coverage": coverage,
        "versions": versions,
    }
    answer = calls[what](*arguments)
    answer["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(answer))
