"""Runs a command some times and prints median CPU and wall seconds and its peak memory.

Kept apart from `peers.py` because the kernel counts a child's peak memory from before it was
replaced by the command: the launcher itself has to be small.
"""

import json
import os
import sys
import time

repetitions, command = int(sys.argv[1]), sys.argv[2:]
cpu, wall, peak, code = [], [], 0, 0
for _ in range(repetitions):
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(child, 0)
    wall.append(time.perf_counter() - start)
    cpu.append(usage.ru_utime + usage.ru_stime)
    peak = max(peak, usage.ru_maxrss)
    code = max(code, os.waitstatus_to_exitcode(status))
middle = repetitions // 2
print(
    json.dumps(
        {
            "code": code,
            "cpu_s": sorted(cpu)[middle],
            "wall_s": sorted(wall)[middle],
            "peak_mb": peak / 1024,
        }
    )
)
