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
        "versions": versions,
    }
    answer = calls[what](*arguments)
    answer["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(answer))
