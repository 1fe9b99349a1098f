"""What Python costs: `python_calls.py call SIGMA Q T`, `import MODULE`. Prints one JSON object.

A call is measured in the same process as the Rust call under it, alternating, so that a busy
machine slows both.
"""

import json
import os
import statistics
import subprocess
import sys
import time


def call(sigma, rate, steps):
    import dosimeter
    from dosimeter import _core

    run = dosimeter.Run(noise_multiplier=sigma, sample_rate=rate, steps=steps)
    python, rust = [], []
    for _ in range(200):
        start = time.perf_counter()
        dosimeter.account(run, delta=1e-5, lens="composition")
        python.append(time.perf_counter() - start)
        rust.append(_core.account_seconds(run._handle, [1e-5], ["composition"], 1))
    return {"python_s": statistics.median(python), "rust_s": statistics.median(rust)}


def imported(module):
    script = (
        "import time; start = time.perf_counter(); "
        f"import {module}; print(time.perf_counter() - start)"
    )
    seconds = []
    for _ in range(7):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        if done.returncode != 0:
            return {"refused": f"{module} cannot be imported"}
        seconds.append(float(done.stdout))
    return {"seconds": statistics.median(seconds), "fastest": min(seconds)}


def peer(sigma, rate, steps):
    import dp_accounting

    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        dp_accounting.pld.PLDAccountant().compose(event, int(steps)).get_epsilon(1e-5)
        seconds.append(time.perf_counter() - start)
    return {"python_s": statistics.median(seconds)}


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    what, *rest = sys.argv[1:]
    if what == "import":
        answer = imported(rest[0])
    else:
        answer = {"call": call, "peer": peer}[what](*(float(word) for word in rest))
    print(json.dumps(answer))
