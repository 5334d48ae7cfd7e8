"""Threads, forks and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from small import SMALL_CLOUDS

import ebp

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_several_threads_ask_one_model(clouds):
    expected = [clouds.sample(2, points=20, seed=seed).tobytes() for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda seed: clouds.sample(2, points=20, seed=seed).tobytes(), range(6)))
    assert found == expected


def test_several_threads_train(sets, clouds):
    with ThreadPoolExecutor(3) as pool:
        fits = [pool.submit(ebp.Clouds("shapes", SMALL_CLOUDS, seed=1).fit, sets) for _ in range(3)]
        found = [fit.result().transform(sets).tobytes() for fit in fits]
    assert found == [clouds.transform(sets).tobytes()] * 3


def test_other_threads_run_meanwhile():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3000, 3)), rng.normal(size=(3000, 3))
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.005)

    counter = threading.Thread(target=count)
    counter.start()
    started = time.perf_counter()
    ebp.metrics.emd(a, b, threads=1)
    ended = time.perf_counter()
    done.set()
    counter.join()
    during = [tick for tick in ticks if started < tick < ended]
    # With the interpreter's lock held there would be none.
    assert len(during) >= 3, (len(during), ended - started)


def in_a_fork(ask) -> bytes:
    """What `ask` says in a child that has none of its parent's threads."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.write(writer, ask())
        os._exit(0)
    os.close(writer)
    # A pool without its threads would wait for ever.
    signal.alarm(60)
    try:
        return os.read(reader, 100)
    finally:
        signal.alarm(0)
        os.waitpid(child, 0)
        os.close(reader)


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="SKIPPED: there is no fork here")


@needs_fork
def test_a_fork_has_pools_of_its_own(clouds):
    expected = clouds.sample(2, points=20, seed=1).tobytes()
    assert in_a_fork(lambda: str(clouds.sample(2, points=20, seed=1).tobytes() == expected).encode()) == b"True"


@needs_fork
def test_a_fork_draws_pictures(sets):
    drawn = ebp.contact_sheet(sets)
    assert in_a_fork(lambda: str(ebp.contact_sheet(sets) == drawn).encode()) == b"True"


@needs_fork
def test_a_fork_trains(sets, clouds):
    def ask():
        model = ebp.Clouds("shapes", SMALL_CLOUDS, seed=1).fit(sets)
        return str(model.transform(sets).tobytes() == expected).encode()

    expected = clouds.transform(sets).tobytes()
    assert in_a_fork(ask) == b"True"


@needs_fork
def test_a_fork_leaves_its_parents_files():
    code = """
import os, pickle, sys, numpy as np, ebp
few = {"train.num_steps": 2, "data.held_out": 3, "model.energy_widths": [8], "model.latent_dim": 3}
model = ebp.Clouds("shapes", few, seed=1).fit(np.random.default_rng(0).normal(size=(9, 20, 3)))
model = pickle.loads(pickle.dumps(model))
child = os.fork()
if child == 0:
    sys.exit(0)  # with all that an ordinary end does
assert os.waitpid(child, 0)[1] == 0
folder = model._keep_alive.path
assert os.path.isdir(folder)
print(model.sample(2, points=5).shape)
del model
print(os.path.exists(folder))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["(2, 5, 3)", "False"], done.stderr


def test_several_threads_import_it():
    code = """
from threading import Barrier, Thread
start, found = Barrier(8), []
def work():
    start.wait()
    import ebp
    found.append(ebp.metrics.chamfer([[0.0, 0.0]], [[3.0, 4.0]]))
threads = [Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found == [50.0] * 8)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr


def test_processes_of_joblib_share_the_work(clouds, sets):
    joblib = pytest.importorskip("joblib")
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(clouds.transform)(part) for part in (sets[:4], sets[4:]))
    np.testing.assert_array_equal(np.concatenate(found), clouds.transform(sets))


TRAIN = """
import sys, ebp
settings = {"train.num_steps": 1000000, "data.num_shapes": 60, "data.num_points": 128, "data.held_out": 5}
def told(progress):
    if progress.done >= 3:
        print("ready", flush=True)
try:
    ebp.Clouds("shapes", settings, seed=1, directory=sys.argv[1], progress=told).fit()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def interrupt(code: str, *arguments: str) -> tuple[float, str, str]:
    """Starts a program and sends Ctrl-C once it is ready. Gives how long it took to say that it was interrupted, what
    it printed then, and its warnings."""
    program = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line.strip() == "ready", program.communicate()[1]
    program.send_signal(signal.SIGINT)
    sent = time.perf_counter()
    rest = ""
    while "interrupted" not in rest:
        line = program.stdout.readline()
        assert line, program.communicate()[1]
        rest += line
    seconds = time.perf_counter() - sent
    printed, told = program.communicate(timeout=60)
    return seconds, rest + printed, told


def test_an_interrupted_training_keeps_its_checkpoint(tmp_path):
    seconds, *_ = interrupt(TRAIN, str(tmp_path / "run"))
    assert seconds < 1.0, f"Ctrl-C took {seconds:.2f} s"
    model = ebp.load(tmp_path / "run")
    assert 3 <= model._ask.step < 1_000_000 and not model._ask.is_finished and model._ask.is_resumable


# A step takes seconds with so many proposals.
LONG_STEP = """
import sys, threading, ebp
settings = {"train.num_steps": 2, "data.num_shapes": 40, "data.num_points": 64, "data.held_out": 5, "batch_size": 8,
            "evaluation.num_sets": 1, "model.energy_widths": [512, 512], "model.num_proposals": 30_000}
def told(progress):
    if progress.done == 0:
        # By then the first step is under way.
        threading.Timer(0.3, lambda: print("ready", flush=True)).start()
folder = sys.argv[1] if len(sys.argv) > 1 else None
model = ebp.Clouds("shapes", settings, seed=1, directory=folder, threads=1, progress=told)
try:
    model.fit()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
GOES_ON = """
print(ebp.load(folder)._ask.step)
print(model.set_params(progress=None).fit(resume=True)._ask.step)
"""


@pytest.mark.parametrize(
    ("then", "printed", "step"), [("", [], 1), (GOES_ON, ["1", "2"], 2)], ids=["ends", "goes-on"]
)
def test_a_long_step_is_saved_behind_the_back_of_who_interrupted_it(tmp_path, then, printed, step):
    seconds, rest, told = interrupt(LONG_STEP + then, str(tmp_path / "run"))
    assert seconds < 1.0, f"Ctrl-C took {seconds:.2f} s"
    assert "EbpWarning: the step under way takes its time" in told
    assert rest.split() == ["interrupted", *printed]
    assert ebp.load(tmp_path / "run")._ask.step == step


def test_an_interrupted_training_without_a_folder_does_not_wait():
    seconds, _, told = interrupt(LONG_STEP)
    assert seconds < 1.0, f"Ctrl-C took {seconds:.2f} s"
    assert told == ""


def test_an_interrupted_distance_ends_at_once():
    code = """
import sys, threading, numpy as np, ebp
rng = np.random.default_rng(0)
a, b = rng.normal(size=(30000, 3)), rng.normal(size=(30000, 3))
threading.Timer(0.3, lambda: print("ready", flush=True)).start()
try:
    ebp.metrics.emd(a, b)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os; os._exit(0)
"""
    seconds, *_ = interrupt(code)
    assert seconds < 1.0, f"Ctrl-C took {seconds:.2f} s"


def test_interrupted_pairs_stop_working():
    code = """
import threading, time, numpy as np, ebp
rng = np.random.default_rng(0)
sets = rng.normal(size=(60, 400, 3))
threading.Timer(0.5, lambda: print("ready", flush=True)).start()
try:
    ebp.metrics.pairwise(sets, sets, "exact")
except KeyboardInterrupt:
    print("interrupted", flush=True)
time.sleep(0.5)
before = time.process_time()
time.sleep(0.5)
print("idle" if time.process_time() - before < 0.2 else "busy", flush=True)
"""
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None and program.stdout.readline().strip() == "ready"
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=60)[0].split() == ["interrupted", "idle"]
