#!/usr/bin/env python3
"""Times `ebp bench` and the same work in PyTorch, in turn, and prints a table.

    python3 bench/compare.py [paper-cloud|small] [--threads N] [--rounds N] [--json]

Every round runs ebp, PyTorch as it is, and PyTorch with glibc told to keep large blocks instead
of returning them to the system ("tuned"). A table entry is the median over rounds of the median
over runs. Without PyTorch only the ebp side is measured. See README.md beside this file.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What "tuned" means: no mmap for large blocks, no trimming of the heap, growth in large pieces.
TUNED_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TRIM_THRESHOLD_": "20000000000",
    "MALLOC_TOP_PAD_": "268435456",
}

# Rows of the table: title, case of `ebp bench`, form of the same work in PyTorch.
ROWS = [
    ("energy forward + backward", "energy_backward", "concat"),
    ("energy forward + backward", "energy_backward", "factored"),
    ("score", "score", "autograd"),
    ("score", "score", "analytic"),
    ("20 Langevin steps", "langevin20", "autograd"),
    ("20 Langevin steps", "langevin20", "analytic"),
    ("encoder forward + backward", "encoder_backward", "autograd"),
]
CASES = sorted({case for _, case, _ in ROWS})

# The paper's constants, as in `ebp bench`: step size, noise scale, clip, steps.
STEP_SIZE, NOISE_SCALE, CLIP, STEPS = 0.1, 0.05, 0.1, 20

# A case runs for this many seconds, but at least and at most so many times, as in `ebp bench`.
SECONDS, FEWEST_RUNS, MOST_RUNS = 2.0, 3, 25


def main():
    arguments = parse_arguments()
    if arguments.torch_worker:
        worker(json.loads(arguments.torch_worker))
        return
    has_torch = importlib.util.find_spec("torch") is not None
    if not has_torch:
        say("PYTORCH IS NOT INSTALLED: only the ebp side is measured (pip install torch)")
    binary = arguments.ebp or build_ebp()
    ebp_rounds, torch_rounds = [], {"eager": [], "tuned": []}
    load_before = load_average()
    if load_before is not None and load_before > 0.5:
        say(f"WARNING: load average {load_before:.1f}: other work is running here, and threads "
            "that wait for each other suffer most from it; do not quote these times")
    for number in range(1, arguments.rounds + 1):
        say(f"round {number} of {arguments.rounds}: ebp")
        ebp_rounds.append(run_ebp(binary, arguments.size, arguments.threads))
        if has_torch:
            for flavour, environment in [("eager", {}), ("tuned", TUNED_ALLOCATOR)]:
                say(f"round {number} of {arguments.rounds}: PyTorch {flavour}")
                sizes = ebp_rounds[0]["sizes"]
                torch_rounds[flavour].append(run_torch(sizes, arguments.threads, environment))
    result = summarise(arguments, ebp_rounds, torch_rounds if has_torch else None)
    result["load_average"] = [load_before, load_average()]
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        print_table(result)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", nargs="?", default="paper-cloud", choices=["paper-cloud", "small"])
    parser.add_argument("--threads", type=positive, default=usable_cores(), metavar="N",
                        help="threads of both sides (default: all cores)")
    parser.add_argument("--rounds", type=positive, default=3, metavar="N",
                        help="how often each side runs, in turn (default: 3)")
    parser.add_argument("--ebp", metavar="PATH", help="the ebp binary (default: build it)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    # How the script starts itself for the PyTorch side; the argument holds the sizes.
    parser.add_argument("--torch-worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def usable_cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average():
    """Other work on the machine shows here; a time measured beside it means little."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def say(message):
    print(message, file=sys.stderr, flush=True)


def build_ebp():
    """Builds the release binary and asks cargo where it put it."""
    say("building ebp")
    command = ["cargo", "build", "--release", "--package", "ebp-cli",
               "--message-format", "json-render-diagnostics"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    for line in output.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "ebp":
            return message["executable"]
    sys.exit("cargo built no binary named ebp")


def run_ebp(binary, size, threads):
    command = [binary, "bench", size, "--json", "--quiet", "--threads", str(threads),
               "--cases", ",".join(CASES)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(output.stdout)


def run_torch(sizes, threads, environment):
    task = json.dumps({"sizes": sizes, "threads": threads})
    command = [sys.executable, __file__, "--torch-worker", task]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), **environment}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                            env=environment)
    return json.loads(output.stdout)


def summarise(arguments, ebp_rounds, torch_rounds):
    first = ebp_rounds[0]
    rows = []
    for title, case, form in ROWS:
        ebp_ms = [ms for report in ebp_rounds for ms in
                  [entry["ms"] for entry in report["cases"] if entry["name"] == case]]
        row = {"title": title, "case": case, "torch_form": form,
               "ebp_ms": statistics.median(ebp_ms), "ebp_ms_rounds": ebp_ms}
        for flavour in ["eager", "tuned"]:
            rounds = torch_rounds and [r["ms"][f"{case}/{form}"] for r in torch_rounds[flavour]]
            row[f"torch_{flavour}_ms"] = rounds and statistics.median(rounds)
            row[f"torch_{flavour}_ms_rounds"] = rounds
            row[f"{flavour}_over_ebp"] = rounds and row[f"torch_{flavour}_ms"] / row["ebp_ms"]
        rows.append(row)
    return {
        "size": first["size"],
        "sizes": first["sizes"],
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "ebp_version": first["version"],
        "simd": first["simd"],
        "peak_gflops": max(report["peak_gflops"] for report in ebp_rounds),
        "torch_version": torch_rounds and torch_rounds["eager"][0]["version"],
        "rows": rows,
    }


def print_table(result):
    sizes = result["sizes"]
    torch = f"PyTorch {result['torch_version']}" if result["torch_version"] else "no PyTorch"
    print(f"{result['size']}: {sizes['sets']} sets × {sizes['points']} points × "
          f"{sizes['value_dim']}, context {sizes['context_dim']}; {result['threads']} threads; "
          f"ebp {result['ebp_version']} ({result['simd']}, measured peak "
          f"{result['peak_gflops']:.0f} GFLOP/s), {torch}; rounds: {result['rounds']}")
    if None not in result["load_average"]:
        before, after = result["load_average"]
        print(f"load average before {before:.1f}, after {after:.1f}")
    print()
    if not result["torch_version"]:
        print("| case | ebp ms |\n|---|---|")
        seen = {row["title"]: row["ebp_ms"] for row in result["rows"]}
        for title, ms in seen.items():
            print(f"| {title} | {milliseconds(ms)} |")
        return
    print("| case | PyTorch form | ebp ms | PyTorch eager ms | PyTorch tuned ms "
          "| eager / ebp | tuned / ebp |")
    print("|---|---|---|---|---|---|---|")
    for row in result["rows"]:
        print(f"| {row['title']} | {row['torch_form']} | {milliseconds(row['ebp_ms'])} "
              f"| {milliseconds(row['torch_eager_ms'])} | {milliseconds(row['torch_tuned_ms'])} "
              f"| {row['eager_over_ebp']:.1f} | {row['tuned_over_ebp']:.1f} |")


def milliseconds(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def worker(task):
    """The PyTorch side, in a process of its own because its allocator is chosen at start."""
    import torch

    torch.set_num_threads(task["threads"])
    torch.manual_seed(0)
    timings = {name: median_ms(run) for name, run in torch_cases(torch, task["sizes"]).items()}
    json.dump({"version": torch.__version__, "ms": timings}, sys.stdout)


def median_ms(run):
    run()
    times, begin = [], time.perf_counter()
    while len(times) < FEWEST_RUNS or (
            len(times) < MOST_RUNS and time.perf_counter() - begin < SECONDS):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[len(times) // 2]


def torch_cases(torch, sizes):
    """Case and form → a function that does the work once."""
    if sizes["activation"] != "relu" or sizes["context_at"] != "first":
        sys.exit("the PyTorch side knows relu with the context at the first layer only")
    linear, relu, grad = torch.nn.functional.linear, torch.relu, torch.autograd.grad
    sets, points, dim = sizes["sets"], sizes["points"], sizes["value_dim"]
    elements = torch.randn(sets, points, dim)
    context = torch.randn(sets, sizes["context_dim"])

    def layers(widths):
        weights = [torch.randn(b, a) * (2.0 / a) ** 0.5 for a, b in zip(widths, widths[1:])]
        biases = [torch.zeros(b) for b in widths[1:]]
        return [w.requires_grad_() for w in weights], [b.requires_grad_() for b in biases]

    weights, biases = layers([dim + sizes["context_dim"], *sizes["energy_widths"], 1])
    fixed_weights, fixed_biases = [w.detach() for w in weights], [b.detach() for b in biases]

    def finish(hidden, weights, biases):
        for weight, bias in zip(weights[1:-1], biases[1:-1]):
            hidden = relu(linear(hidden, weight, bias))
        return linear(hidden, weights[-1], biases[-1]).squeeze(-1)

    def concat(x, weights, biases):
        """The paper's form: every element beside a copy of its set's context."""
        inputs = torch.cat([x, context[:, None, :].expand(sets, points, -1)], -1)
        return finish(relu(linear(inputs, weights[0], biases[0])), weights, biases)

    def factored(x, weights, biases):
        """The same function with the context's part of the first layer once per set."""
        shift = linear(context, weights[0][:, dim:], biases[0])[:, None, :]
        return finish(relu(linear(x, weights[0][:, :dim]) + shift), weights, biases)

    def energy_backward(form):
        return lambda: grad(form(elements, weights, biases).mean(), weights + biases)

    def autograd_score(x):
        x = x.detach().requires_grad_()
        values = factored(x, fixed_weights, fixed_biases)
        return values.detach(), grad(values.sum(), x)[0]

    # Analytic score of a rectified network, in place where PyTorch can: the last hidden layer's
    # slopes times [output weight × that layer's weight], then down layer by layer.
    first = fixed_weights[0][:, :dim].contiguous()
    hidden_weights = [first, *fixed_weights[1:-1]]
    folded = fixed_weights[-1].t() * hidden_weights[-1]

    def context_shift():
        return linear(context, fixed_weights[0][:, dim:], fixed_biases[0])[:, None, :]

    def analytic_score(x, shift, wants_values):
        hidden = linear(x, first).view(sets, points, -1).add_(shift).relu_()
        stack = [hidden.view(sets * points, -1)]
        for weight, bias in zip(fixed_weights[1:-1], fixed_biases[1:-1]):
            stack.append(torch.addmm(bias, stack[-1], weight.t()).relu_())
        values = linear(stack[-1], fixed_weights[-1], fixed_biases[-1]) if wants_values else None
        gradient = stack.pop().gt_(0) @ folded
        for weight in reversed(hidden_weights[:-1]):
            gradient = gradient.mul_(stack.pop() > 0) @ weight
        return values, gradient

    def analytic_score_once():
        with torch.no_grad():
            return analytic_score(elements.view(-1, dim), context_shift(), wants_values=True)

    def step(x, gradient):
        return (x + (0.5 * STEP_SIZE) * gradient.clamp(-CLIP, CLIP)
                + NOISE_SCALE * torch.randn_like(x))

    def autograd_langevin():
        x = elements
        for _ in range(STEPS):
            x = step(x, autograd_score(x)[1])
        return x

    def analytic_langevin():
        with torch.no_grad():
            x, shift = elements.view(-1, dim), context_shift()
            for _ in range(STEPS):
                x = step(x, analytic_score(x, shift, wants_values=False)[1])
            return x

    encoder_weights, encoder_biases = layers([dim, *sizes["encoder_widths"]])

    def encoder():
        hidden = elements
        for weight, bias in zip(encoder_weights, encoder_biases):
            hidden = relu(linear(hidden, weight, bias))
        return grad(hidden.max(1)[0].square().sum(), encoder_weights + encoder_biases)

    # The forms must be one function; the analytic score must be autograd's.
    with torch.no_grad():
        torch.testing.assert_close(concat(elements, fixed_weights, fixed_biases),
                                   factored(elements, fixed_weights, fixed_biases),
                                   rtol=1e-3, atol=1e-3)
    expected, (values, found) = autograd_score(elements), analytic_score_once()
    torch.testing.assert_close(values.view(-1), expected[0].view(-1), rtol=1e-3, atol=1e-3)
    # Elements within rounding of a kink may fall on either side of it.
    agree = torch.isclose(found.view(-1), expected[1].reshape(-1), rtol=1e-3, atol=1e-3)
    assert agree.float().mean() > 0.999, "the analytic score differs from autograd's"

    return {
        "energy_backward/concat": energy_backward(concat),
        "energy_backward/factored": energy_backward(factored),
        "score/autograd": lambda: autograd_score(elements),
        "score/analytic": analytic_score_once,
        "langevin20/autograd": autograd_langevin,
        "langevin20/analytic": analytic_langevin,
        "encoder_backward/autograd": encoder,
    }


if __name__ == "__main__":
    main()
