"""Steps a second of two processes of one core each against one process of two cores; `tools/mpi/check --speed` starts it.

A step's time is that between runs of a few and of many steps, so that neither the start nor the last measurement is
in it; the least of several rounds, in which the ways come in turn. With --network RATE (such as 1gbit; Linux, root)
everything travels by TCP over a loopback that is so slow, in a network namespace of its own.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from check import EBP, launched, run

CLOUDS = [
    "data.source=chair", "data.num_shapes=100", "data.num_points=1024", "data.held_out=10", "evaluation.num_sets=3",
    "evaluation.every=100000", "evaluation.num_points=50",
]
PICTURES = [
    "data.num_training=2000", "data.num_test=20", "evaluation.num_pictures=2", "evaluation.num_draws=2",
    'evaluation.parts=["10"]', "evaluation.drawn=[]", "evaluation.classifies=false", "evaluation.every=100000",
]
# Preset, settings, and a few and many steps: some seconds between them on two cores.
CASES = {
    "shapes": ("shapes", CLOUDS, 20, 420),
    "cloud": ("cloud", CLOUDS, 2, 12),
    "cloud-ade": ("cloud-ade", CLOUDS, 1, 5),
    "digits": ("digits", PICTURES + ["process=importance"], 10, 110),
    "digits-ade": ("digits", PICTURES + ["process=ade"], 5, 45),
}
# What a way is called, the library, processes, threads of each, shards.
WAYS = [
    ("one process, two threads", None, 1, 2, 1),
    ("the same, two shards", None, 1, 2, 2),
    ("two processes, MPICH", "mpich", 2, 1, 2),
    ("two processes, Open MPI", "openmpi", 2, 1, 2),
]
# Nothing but TCP.
BY_TCP = {
    "mpich": {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"},
    "openmpi": {
        "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_btl_tcp_if_include": "lo",
        "OMPI_MCA_oob_tcp_if_include": "lo", "PRTE_MCA_prte_if_include": "lo",
    },
}


def sent():
    """Bytes that have gone over the loopback of this network namespace."""
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[8])
    return 0


def measured(case, way, steps, is_by_tcp):
    """How long so many steps of a case took, and the bytes that went over the loopback from start to end."""
    preset, settings, _, _ = CASES[case]
    _, library, count, threads, shards = way
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        words = [EBP, "train", preset, "-q", "--device", "cpu", "--threads", str(threads), "--out", str(out)]
        more = [f"train.num_steps={steps}", f"train.shards={shards}", "train.checkpoint_every=100000"]
        for setting in settings + more:
            words += ["--set", setting]
        before = sent()
        if library is None:
            run(words)
        else:
            words, environment = launched(library, count, words)
            run(words, dict(environment, **(BY_TCP[library] if is_by_tcp else {})))
        return json.loads((out / "seconds.json").read_text())["seconds"], sent() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="shapes,cloud,digits", help=f"some of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--libraries", default="mpich,openmpi")
    parser.add_argument("--network", help="such as 1gbit")
    arguments = parser.parse_args()
    if arguments.network and "EBP_SLOW" not in os.environ:
        slow = 'ip link set lo up && tc qdisc add dev lo root tbf rate "$0" burst 256k latency 200ms && exec "$@"'
        words = ["unshare", "-n", "sh", "-c", slow, arguments.network, sys.executable, *sys.argv]
        sys.exit(subprocess.run(words, env=dict(os.environ, EBP_SLOW="yes")).returncode)
    ways = [way for way in WAYS if way[1] is None or way[1] in arguments.libraries.split(",")]
    for case in arguments.cases.split(","):
        few, many = CASES[case][2:]
        best, travelled = {}, {}
        for _ in range(arguments.rounds):
            for way in ways:
                (start, early), (end, late) = (
                    measured(case, way, steps, bool(arguments.network)) for steps in (few, many)
                )
                step = (end - start) / (many - few)
                best[way[0]] = min(step, best.get(way[0], step))
                travelled[way[0]] = (late - early) / (many - few)
        least = min(step for name, step in best.items() if not name.startswith("two processes"))
        for name, step in best.items():
            words = f"{case:10} {name:26} {1e3 * step:8.2f} ms a step  {least / step:5.0%} of the better process"
            if arguments.network and name.startswith("two processes"):
                words += f"  {travelled[name] / 1e6:6.2f} MB a step by TCP"
            print(words, flush=True)


if __name__ == "__main__":
    main()
