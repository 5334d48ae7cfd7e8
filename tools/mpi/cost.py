"""What steps on many devices would cost, by the formula of docs/parallel.md; nothing here is measured.

    python3 tools/mpi/cost.py --step-ms 5.84 --sets 64 --parameters 988161 --late 230912

T(N) = t / N + Σ over optimiser steps [ 8 L (N − 1) / (N W) + 2 (N − 1) l + 8 P / H ] + 3 ⌈log₂ N⌉ l (u + 2)

t   a step of all sets on one device         W   bytes a second between two machines, each way
P   parameters of one optimiser step         l   seconds until the first byte is there
L   those whose gradient is known last       H   bytes a second between a device and its host
u   optimiser steps in a step

What is known before travels while the backward pass goes on and costs nothing, if that takes long enough.
"""

import argparse
import math


def exchange(arguments, count):
    """Seconds that a step spends in meetings, with `count` devices on as many machines."""
    if count == 1:
        return 0.0
    latency, width = arguments.latency_us * 1e-6, arguments.bandwidth * 1e9
    seconds = 0.0
    for parameters, late in zip(arguments.parameters, arguments.late):
        seconds += 8 * late * (count - 1) / count / width + 2 * (count - 1) * latency
        if arguments.host > 0:
            seconds += 8 * parameters / (arguments.host * 1e9)
    # Headers of every optimiser step, of the record and of the wish to stop.
    return seconds + 3 * math.ceil(math.log2(count)) * latency * (len(arguments.parameters) + 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step-ms", type=float, required=True, help="a step on one device")
    parser.add_argument("--sets", type=int, required=True, help="sets of that step")
    parser.add_argument("--parameters", type=lambda text: [int(word) for word in text.split(",")], required=True,
                        help="of every optimiser step in a step, with commas between them")
    parser.add_argument("--late", type=lambda text: [int(word) for word in text.split(",")],
                        help="of these those that are known last [all]")
    parser.add_argument("--bandwidth", type=float, default=12.5, help="GB/s between machines [12.5: 100 Gbit/s]")
    parser.add_argument("--latency-us", type=float, default=20.0, help="microseconds [20: TCP; 2: InfiniBand]")
    parser.add_argument("--host", type=float, default=12.0, help="GB/s between device and host; 0 for CPUs [12]")
    parser.add_argument("--devices", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2, 8, 64, 1024])
    arguments = parser.parse_args()
    arguments.late = arguments.late or arguments.parameters
    if len(arguments.late) != len(arguments.parameters):
        parser.error("--late must name as many numbers as --parameters")
    step = arguments.step_ms * 1e-3
    print("devices  the same batch: ms  efficiency   a batch each: ms  efficiency  MB sent a step")
    for count in arguments.devices:
        meetings = exchange(arguments, count)
        megabytes = sum(8 * p * (count - 1) / count for p in arguments.parameters) / 1e6
        same = "           –           –"
        if count <= arguments.sets:
            time = step / count + meetings
            same = f"{1e3 * time:12.2f}{step / count / time:12.0%}"
        weak = step + meetings
        print(f"{count:7}{same:>24}{1e3 * weak:19.2f}{step / weak:12.0%}{megabytes:16.1f}")


if __name__ == "__main__":
    main()
