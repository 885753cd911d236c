"""Runs the demo with an independent count of its events, until somebody kills it.

kill_run.py COUNT_HOOKS_LIBRARY COUNTER_FILE OUTPUT DEMO [ARGS...]

The counter counts from the moment that recording has begun; nothing allocates in between.
"""

import ctypes
import runpy
import sys

import msmemscope
import torch


def main() -> None:
    library, counter_file, output, demo, *arguments = sys.argv[1:]
    msmemscope.config(output_path=output, analysis="leaks", report_to="none")
    msmemscope.start()
    torch.zeros(1)  # whatever start() or a first use allocates is over now
    count = ctypes.CDLL(library)
    if count.count_hooks_install(counter_file.encode()) != 0:
        sys.exit("the hooks could not be wrapped")
    print("counting", flush=True)
    sys.argv = [demo, *arguments]
    runpy.run_path(demo, run_name="__main__")


main()
