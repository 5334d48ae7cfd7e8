#!/usr/bin/env python3
"""Times `ebp bench --device cuda` and the same work in PyTorch on the same GPU, in turn.

    python3 bench/compare_cuda.py [--precisions f32,tf32] [--rounds N] [--ebp PATH] [--json]

Rows are the paper's point clouds: 64 sets of 2048 points, context 512, energy 128-64, encoder
128-256-256-512. Every row has the forms in which PyTorch can do it: the paper's (eager, every point
beside a copy of its context, gradients by autograd), factored, and factored under torch.compile.
Times of PyTorch begin and end with all data on the GPU; those of ebp include the way there and back,
and beside them stands what its kernels take by themselves, with their share of the measured peak and of
the whole time, and their number. Training steps of presets are those of `torch_steps.py` with the settings
that ebp reports; some of them ebp takes alone. Ratios are of whole times. A table entry is the median over rounds of the median over runs. See
README.md beside this file.
"""

import argparse
import ctypes
import importlib.util
import json
import pathlib
import statistics
import subprocess
import sys
import time

from compare import (
    CLIP, FEWEST_RUNS, MOST_RUNS, NOISE_SCALE, SECONDS, STEP_SIZE, STEPS, build_ebp, milliseconds,
    positive, say,
)
from torch_steps import preset_settings, torch_steps

# Rows of the table: title, case of `ebp bench`, form of the same work in PyTorch or None.
ROWS = [
    ("energy forward + backward", "energy_backward", "paper"),
    ("energy forward + backward", "energy_backward", "factored"),
    ("energy forward + backward", "energy_backward", "compiled"),
    ("20 Langevin steps", "langevin20", "paper"),
    ("20 Langevin steps", "langevin20", "factored"),
    ("20 Langevin steps", "langevin20", "compiled"),
    ("encoder forward + backward", "encoder_backward", "paper"),
    ("encoder forward + backward", "encoder_backward", "compiled"),
    ("whole training step", "training_step", "paper"),
    ("whole training step", "training_step", "factored"),
    ("step of preset cloud", "importance_step", None),
    ("step of preset paper/cloud", "paper_ade_step", "paper"),
    ("step of preset paper/cloud", "paper_ade_step", "factored"),
    ("step of preset cloud-ade", "ade_step", None),
    ("step of preset mnist", "mnist_step", "factored"),
    ("step of preset celeba", "celeba_step", None),
]
CASES = sorted({case for _, case, _ in ROWS})
PRECISIONS = ("f32", "tf32")


def main():
    arguments = parse_arguments()
    if arguments.torch_worker:
        worker(json.loads(arguments.torch_worker))
        return
    check_machine()
    binary = arguments.ebp or build_ebp()
    results = []
    for precision in arguments.precisions:
        ebp_rounds, torch_rounds = [], []
        for number in range(1, arguments.rounds + 1):
            say(f"{precision}, round {number} of {arguments.rounds}: ebp")
            ebp_rounds.append(run_ebp(binary, precision))
            say(f"{precision}, round {number} of {arguments.rounds}: PyTorch")
            torch_rounds.append(run_torch(ebp_rounds[0], precision))
        results.append(summarise(precision, ebp_rounds, torch_rounds))
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        for result in results:
            print_table(result)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--precisions", type=precisions, default="f32,tf32", metavar="LIST",
                        help="f32, tf32 or both (default: both)")
    parser.add_argument("--rounds", type=positive, default=2, metavar="N",
                        help="how often each side runs, in turn (default: 2)")
    parser.add_argument("--ebp", metavar="PATH", help="the ebp binary (default: build it)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    # How the script starts itself for the PyTorch side; the argument holds the sizes.
    parser.add_argument("--torch-worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def precisions(text):
    """Names of precisions that both sides have."""
    names = text.split(",")
    for name in names:
        if name not in PRECISIONS:
            expected = ", ".join(PRECISIONS)
            raise argparse.ArgumentTypeError(f"`{name}` is none of {expected}")
    return names


def check_machine():
    """Ends with the reason where there is no GPU or no PyTorch, before anything is built."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        sys.exit("there is no NVIDIA GPU here: its driver (libcuda.so.1) was not found")
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        sys.exit("there is no NVIDIA GPU here: the driver finds none")
    if importlib.util.find_spec("torch") is None:
        sys.exit("PyTorch is not installed for this Python; `ebp bench --device cuda` times ebp alone")


def run_ebp(binary, precision):
    command = [binary, "bench", "paper-cloud", "--device", "cuda", "--precision", precision,
               "--json", "--quiet", "--cases", ",".join(CASES)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(output.stdout)


def run_torch(report, precision):
    task = json.dumps({"sizes": report["sizes"], "settings": preset_settings(report),
                       "precision": precision})
    command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--torch-worker", task]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(output.stdout.splitlines()[-1])


def summarise(precision, ebp_rounds, torch_rounds):
    rows = []
    for title, case, form in ROWS:
        entries = [entry for report in ebp_rounds for entry in report["cases"]
                   if entry["name"] == case]
        ebp_ms = statistics.median(entry["ms"] for entry in entries)
        found = [r["ms"].get(f"{case}/{form}") for r in torch_rounds]
        torch_ms = None if None in found else statistics.median(found)
        kernel_ms = statistics.median(entry["kernel_ms"] for entry in entries)
        # Nobody counts the arithmetic of a preset's step.
        fractions = [entry["kernel_peak_fraction"] for entry in entries
                     if entry["kernel_peak_fraction"] is not None]
        rows.append({"title": title, "case": case, "torch_form": form, "ebp_ms": ebp_ms,
                     "ebp_kernel_ms": kernel_ms,
                     "ebp_kernel_peak_fraction": max(fractions, default=None),
                     "ebp_kernel_share": statistics.median(entry["kernel_share"]
                                                           for entry in entries),
                     "ebp_launches": statistics.median(entry["launches"] for entry in entries),
                     "torch_ms": torch_ms, "ratio": torch_ms and torch_ms / ebp_ms})
    first = ebp_rounds[0]
    return {"precision": precision, "sizes": first["sizes"], "device": first["device"],
            "ebp_version": first["version"], "torch_version": torch_rounds[0]["version"],
            "peak_tflops": max(report["peak_gflops"] for report in ebp_rounds) / 1e3,
            "torch_failures": torch_rounds[0]["failures"], "rounds": len(ebp_rounds),
            "rows": rows}


def print_table(result):
    sizes = result["sizes"]
    print(f"{sizes['sets']} sets × {sizes['points']} points × {sizes['value_dim']}, context "
          f"{sizes['context_dim']}; {result['device']}; ebp {result['ebp_version']}, PyTorch "
          f"{result['torch_version']}; measured peak {result['peak_tflops']:.0f} TFLOP/s; rounds: "
          f"{result['rounds']}\n")
    print(f"| {result['precision']} | PyTorch form | ebp ms | kernels ms | share of peak "
          "| share of time | launches | PyTorch ms | PyTorch / ebp |")
    print("|---|---|---|---|---|---|---|---|---|")

    def or_dash(number, show):
        return "–" if number is None else show(number)

    def percent(share):
        return f"{100 * share:.0f} %"

    for row in result["rows"]:
        cells = [
            row["title"], row["torch_form"] or "–", milliseconds(row["ebp_ms"]),
            milliseconds(row["ebp_kernel_ms"]), or_dash(row["ebp_kernel_peak_fraction"], percent),
            percent(row["ebp_kernel_share"]), f"{row['ebp_launches']:.0f}",
            or_dash(row["torch_ms"], milliseconds), or_dash(row["ratio"], lambda r: f"{r:.1f}"),
        ]
        print(f"| {' | '.join(cells)} |")
    for name, reason in result["torch_failures"].items():
        print(f"\n{name}: {reason}")
    print()


def worker(task):
    """The PyTorch side, in a process of its own so that both have the GPU to themselves."""
    import torch

    is_tf32 = task["precision"] == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = is_tf32
    torch.backends.cudnn.allow_tf32 = is_tf32
    torch.manual_seed(0)
    timings, failures = {}, {}
    cases = torch_cases(torch, task["sizes"])
    cases.update(torch_steps(torch, task["settings"], torch.device("cuda")))
    for name, run in cases.items():
        try:
            timings[name] = median_ms(torch, run)
        except Exception as error:  # A form that does not compile leaves the others.
            failures[name] = str(error).splitlines()[0] if str(error) else repr(error)
    print()
    print(json.dumps({"version": torch.__version__, "ms": timings, "failures": failures}))


def median_ms(torch, run):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times, begin = [], time.perf_counter()
    while len(times) < FEWEST_RUNS or (
            len(times) < MOST_RUNS and time.perf_counter() - begin < SECONDS):
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[len(times) // 2]


def torch_cases(torch, sizes):
    """Case and form → a function that does the work once."""
    if sizes["activation"] != "relu" or sizes["context_at"] != "first":
        sys.exit("the PyTorch side knows relu with the context at the first layer only")
    linear, relu, grad = torch.nn.functional.linear, torch.relu, torch.autograd.grad
    sets, points, dim = sizes["sets"], sizes["points"], sizes["value_dim"]
    latent = sizes["context_dim"]
    device = torch.device("cuda")
    elements = torch.randn(sets, points, dim, device=device)
    context = torch.randn(sets, latent, device=device)

    def layers(widths):
        weights = [torch.randn(b, a, device=device) * (2.0 / a) ** 0.5
                   for a, b in zip(widths, widths[1:])]
        biases = [torch.zeros(b, device=device) for b in widths[1:]]
        return [w.requires_grad_() for w in weights], [b.requires_grad_() for b in biases]

    weights, biases = layers([dim + latent, *sizes["energy_widths"], 1])
    fixed_weights, fixed_biases = [w.detach() for w in weights], [b.detach() for b in biases]
    energy_parameters = weights + biases

    def finish(hidden, weights, biases):
        for weight, bias in zip(weights[1:-1], biases[1:-1]):
            hidden = relu(linear(hidden, weight, bias))
        return linear(hidden, weights[-1], biases[-1]).squeeze(-1)

    def concat(x, context, weights, biases):
        """The paper's form: every element beside a copy of its set's context."""
        inputs = torch.cat([x, context[:, None, :].expand(-1, x.shape[1], -1)], -1)
        return finish(relu(linear(inputs, weights[0], biases[0])), weights, biases)

    def factored(x, context, weights, biases):
        """The same function with the context's part of the first layer once per set."""
        shift = linear(context, weights[0][:, dim:], biases[0])[:, None, :]
        return finish(relu(linear(x, weights[0][:, :dim]) + shift), weights, biases)

    def energy_backward(form):
        return lambda: grad(form(elements, context, weights, biases).mean(), energy_parameters)

    def moved(x, gradient):
        return (x + (0.5 * STEP_SIZE) * gradient.clamp(-CLIP, CLIP)
                + NOISE_SCALE * torch.randn_like(x))

    def paper_langevin():
        x = elements
        for _ in range(STEPS):
            x = x.detach().requires_grad_()
            x = moved(x, grad(concat(x, context, fixed_weights, fixed_biases).sum(), x)[0])
        return x

    # ∇ₓ f of a rectified network by hand: slopes of the last hidden layer times its weights, then
    # down layer by layer.
    def analytic_score(x, shift):
        stack = [linear(x, fixed_weights[0][:, :dim]) + shift]
        for weight, bias in zip(fixed_weights[1:-1], fixed_biases[1:-1]):
            stack.append(linear(relu(stack[-1]), weight, bias))
        gradient = (stack.pop() > 0) * fixed_weights[-1].view(-1)
        for weight in reversed(fixed_weights[1:-1]):
            gradient = (gradient @ weight) * (stack.pop() > 0)
        return gradient @ fixed_weights[0][:, :dim]

    @torch.no_grad()
    def factored_langevin():
        shift = linear(context, fixed_weights[0][:, dim:], fixed_biases[0])[:, None, :]
        x = elements
        for _ in range(STEPS):
            x = moved(x, analytic_score(x, shift))
        return x

    encoder_weights, encoder_biases = layers([dim, *sizes["encoder_widths"]])
    encoder_parameters = encoder_weights + encoder_biases

    def pooled(x):
        hidden = x
        for weight, bias in zip(encoder_weights, encoder_biases):
            hidden = relu(linear(hidden, weight, bias))
        return hidden.amax(1)

    def encoder_loss():
        return pooled(elements).square().sum()

    def encoder_backward(loss):
        return lambda: grad(loss(), encoder_parameters)

    # Whole steps. Both encode the sets, draw θ, and end with Adam over all parameters and a moving
    # average of them. The paper's goes through twenty Langevin steps and their second derivatives
    # for its sampler and then takes the energy's gradient at data and samples. The other does what
    # ebp does: log Z by importance sampling, with as many proposals as points. Proposals are drawn
    # uniformly here, which is less work than ebp's grids around the points.
    width = sizes["encoder_widths"][-1]
    head_weights, head_biases = layers([width, 256, 2 * latent])
    start = torch.zeros(sets, points, dim, device=device).requires_grad_()
    everything = encoder_parameters + head_weights + head_biases + energy_parameters
    averages = [w.detach().clone() for w in everything]
    adam = torch.optim.Adam(everything, lr=1e-6, fused=True)
    sampler_adam = torch.optim.Adam([start], lr=1e-6, fused=True)

    def posterior():
        out = linear(relu(linear(relu(pooled(elements)), head_weights[0], head_biases[0])),
                     head_weights[1], head_biases[1])
        mean, log_std = out[:, :latent], (out[:, latent:] - 2.0).clamp(-4.0, 2.0)
        theta = mean + log_std.exp() * torch.randn_like(mean)
        kl = 0.5 * (mean.square() + (2 * log_std).exp() - 2 * log_std - 1).sum(1)
        return theta, kl

    def update(loss):
        adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(everything, 5.0)
        adam.step()
        torch._foreach_lerp_(averages, [w.detach() for w in everything], 1e-3)

    def paper_step():
        theta, kl = posterior()
        fixed = theta.detach()
        x = start + NOISE_SCALE * torch.randn_like(start)
        for _ in range(STEPS):
            values = concat(x, fixed, fixed_weights, fixed_biases)
            x = moved(x, grad(values.sum(), x, create_graph=True)[0])
        sampler_adam.zero_grad(set_to_none=True)
        (-concat(x, fixed, fixed_weights, fixed_biases).mean()).backward()
        sampler_adam.step()
        fake = concat(x.detach(), theta, weights, biases).mean()
        real = concat(elements, theta, weights, biases).mean()
        update(fake - real + (kl / points).mean())

    def importance_step():
        theta, kl = posterior()
        proposals = 6.0 * torch.rand(sets, points, dim, device=device) - 3.0
        log_z = factored(proposals, theta, weights, biases).logsumexp(1)
        mean = factored(elements, theta, weights, biases).mean(1)
        update((log_z - mean + kl / points).mean())

    # The forms must be one function; the analytic score must be autograd's.
    with torch.no_grad():
        torch.testing.assert_close(concat(elements, context, fixed_weights, fixed_biases),
                                   factored(elements, context, fixed_weights, fixed_biases),
                                   rtol=1e-2, atol=1e-2)
    x = elements.detach().requires_grad_()
    expected = grad(factored(x, context, fixed_weights, fixed_biases).sum(), x)[0]
    shift = linear(context, fixed_weights[0][:, dim:], fixed_biases[0])[:, None, :]
    # Elements within rounding of a kink may fall on either side of it.
    agree = torch.isclose(analytic_score(elements, shift), expected, rtol=1e-2, atol=1e-2)
    assert agree.float().mean() > 0.99, "the analytic score differs from autograd's"

    compiled_energy = torch.compile(lambda: factored(elements, context, weights, biases).mean())
    compiled_encoder = torch.compile(encoder_loss)
    return {
        "energy_backward/paper": energy_backward(concat),
        "energy_backward/factored": energy_backward(factored),
        "energy_backward/compiled": lambda: grad(compiled_energy(), energy_parameters),
        "langevin20/paper": paper_langevin,
        "langevin20/factored": factored_langevin,
        "langevin20/compiled": torch.compile(factored_langevin),
        "encoder_backward/paper": encoder_backward(encoder_loss),
        "encoder_backward/compiled": encoder_backward(compiled_encoder),
        "training_step/paper": paper_step,
        "training_step/factored": importance_step,
    }


if __name__ == "__main__":
    main()
