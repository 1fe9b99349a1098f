"""What Python costs: `python_calls.py call SIGMA Q T EPSILON_ALONE`, `import MODULE`. Prints one JSON object.

CPU seconds of the whole process, both of its threads included. A call is measured beside the
Rust call under it, alternating, so that a busy machine slows both.
"""

import json
import os
import statistics
import subprocess
import sys
import time


def call(sigma, rate, steps, alone):
    import dosimeter
    from dosimeter import _core

    quantity = "epsilon" if alone else None
    run = dosimeter.Run(noise_multiplier=sigma, sample_rate=rate, steps=steps)
    asked = {"delta": 1e-5, "lens": "composition", "quantity": ["epsilon"] if alone else []}
    question = json.dumps(json.loads(run._handle.question()) | asked)
    python, rust = [], []
    for _ in range(200):
        start = time.process_time()
        dosimeter.account(run, delta=1e-5, lens="composition", quantity=quantity)
        python.append(time.process_time() - start)
        start = time.process_time()
        _core.account_seconds(question, 1)
        rust.append(time.process_time() - start)
    return {"python_s": statistics.median(python), "rust_s": statistics.median(rust)}


def imported(module):
    script = (
        "import time; start = time.process_time(); "
        f"import {module}; print(time.process_time() - start)"
    )
    seconds = []
    for _ in range(7):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        if done.returncode != 0:
            return {"refused": f"{module} cannot be imported"}
        seconds.append(float(done.stdout))
    return {"seconds": statistics.median(seconds), "fastest": min(seconds)}


def peer(sigma, rate, steps, _):
    import dp_accounting

    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    seconds = []
    for _ in range(3):
        start = time.process_time()
        dp_accounting.pld.PLDAccountant().compose(event, int(steps)).get_epsilon(1e-5)
        seconds.append(time.process_time() - start)
    return {"python_s": statistics.median(seconds)}


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    what, *rest = sys.argv[1:]
    if what == "import":
        answer = imported(rest[0])
    else:
        answer = {"call": call, "peer": peer}[what](*(float(word) for word in rest))
    print(json.dumps(answer))
