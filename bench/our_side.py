# SPDX-License-Identifier: Apache-2.0
"""What the programs that compare ours with others share: cores, arguments that are checked, our side when it takes
turns, and quartiles of ratios."""

import contextlib
import os
import statistics
import subprocess
import time


def checked(parser, target, positive, several, known):
    """The arguments, with a list of names in place of those in `several`, separated by commas. An error for numbers in
    `positive` that are not, names that are not `known`, and a --bench that is no program."""
    given = parser.parse_args()
    for name in positive:
        if getattr(given, name) <= 0:
            parser.error(f"{getattr(given, name)} was given for --{name}; give a positive number")
    names = getattr(given, several).split(",")
    for name in names:
        if name not in known:
            parser.error(f"'{name}' is no {several[:-1]} of this comparison; there are {', '.join(known)}")
    setattr(given, several, names)
    if not os.access(given.bench, os.X_OK):
        parser.error(f"'{given.bench}' is no program; build the target {target} and give its path to --bench")
    return given


def text_of(path):
    """What a system file says; empty if there is none."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def processors_in(text):
    """The processors of a list such as 0-2,8."""
    for part in text.strip().split(",") if text.strip() else ():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def one_per_core():
    """Where our programs keep their threads: of each core the first processor that this one may use."""
    chosen, taken = [], set()
    for processor in sorted(os.sched_getaffinity(0)):
        if processor not in taken:
            chosen.append(processor)
            siblings = text_of(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
            taken.update(processors_in(siblings))
    return chosen


def usual_threads():
    """How many threads our kernels have unless they are told: one a core, as far as the control group grants them."""
    quota, period = (text_of("/sys/fs/cgroup/cpu.max").split() + ["max", ""])[:2]
    if not quota.isdigit():
        quota, period = (text_of(f"/sys/fs/cgroup/cpu/cpu.cfs_{what}_us").strip() for what in ("quota", "period"))
    cores = len(one_per_core())
    if quota.isdigit() and period.isdigit() and int(period) > 0:  # without a limit it says max, or -1
        return min(cores, max(1, int(quota) // int(period)))
    return cores


def quartiles(values):
    values = sorted(values)
    return values[len(values) // 4], statistics.median(values), values[(3 * len(values)) // 4]


def turn_of(run, warm_ups, inferences):
    """Median seconds of `inferences` in a row, after a wait in which the threads of the other side, which watch for work
    for a while, leave the processors, and `warm_ups` that are not counted."""
    time.sleep(0.05)
    for _ in range(warm_ups):
        run()
    return statistics.median(run() for _ in range(inferences))


class Served:
    """A program of ours that is asked for times line by line; `found` has the counters of its search. A RuntimeError
    says that it ended too early, so that who compares several goes on with the next."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline().split()
        if ready[:1] != ["ready"]:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"{' '.join(command)} did not get ready")
        self.found = {name: float(value) for name, value in (counter.split("=") for counter in ready[1:])}

    def seconds(self):
        with contextlib.suppress(BrokenPipeError):  # there will be no answer
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self.process.args)} ended before its last turn")
        return float(line)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(BrokenPipeError):  # of a question that nobody took
            self.process.stdin.close()
        self.process.wait()
