#!/usr/bin/env python3
"""Whole training steps in PyTorch, with the settings of the presets that `ebp bench` trains.

    python3 bench/torch_steps.py REPORT.json [--device cpu] [--runs N]

`compare_cuda.py` times them beside ebp. By itself this file takes the steps of a report of `ebp bench
--json` and prints the time of each, on any device: `ebp bench small --sets 2 --points 32 --cases
paper_ade_step,mnist_step --json` gives sizes that every machine finishes.

paper_ade_step is the paper's: encoder, θ, a block LSTM whose draws follow the energy for T Langevin steps
with gradients through all of them (create_graph), Adam for the sampler; then the energy at data and draws,
Adam for everything else, a moving average. mnist_step is that of the preset: two readings of a picture,
both levels of the latent, exact log-masses of the levels of some pixels, Adam, a moving average. Where a
step of ebp does more, that is left out here: walls, draws of the sampler after its update (the energy
takes those from before it), log Z for the record, and batches, which are made once.
"""

import argparse
import json
import math
import time

# Limits of log σ of θ above, and of the generator's; widths of φ, which reads a block. As in the crate.
MOST_LOG_STD_DEV = 2.0
BLOCK_LOG_STD_DEV = (-5.0, 1.0)
BLOCK_INPUT_WIDTHS = (256, 128)
# Coordinates of a point; blurred versions of a picture that a pixel sees.
SPACE = 3
BLURS = 3


def torch_steps(torch, settings, device):
    """Case and form → a function that takes one step; `settings` are those of the report, by case."""
    steps = {}
    if "paper_ade_step" in settings:
        for form in ("paper", "factored"):
            steps[f"paper_ade_step/{form}"] = ade_step(
                torch, settings["paper_ade_step"], device, form)
    if "mnist_step" in settings:
        steps["mnist_step/factored"] = mnist_step(torch, settings["mnist_step"], device)
    return steps


def stack(torch, device, widths):
    """Weights and biases of linear layers, one after the other."""
    parameters = []
    for inputs, outputs in zip(widths, widths[1:]):
        weight = torch.randn(outputs, inputs, device=device) * (2.0 / inputs) ** 0.5
        parameters.append((weight.requires_grad_(), torch.zeros(outputs, device=device)
                           .requires_grad_()))
    return parameters


def through(torch, layers, x, activation):
    """Linear layers with an activation between them."""
    for weight, bias in layers[:-1]:
        x = activation(torch.nn.functional.linear(x, weight, bias))
    return torch.nn.functional.linear(x, *layers[-1])


def flat(*stacks):
    return [array for layers in stacks for layer in layers for array in layer]


class Optimiser:
    """Adam over all parameters with clipped gradients and, if asked for, a moving average."""

    def __init__(self, torch, parameters, rate, beta1, norm, average=None):
        self.torch, self.parameters, self.norm, self.average = torch, parameters, norm, average
        self.adam = torch.optim.Adam(parameters, lr=rate, betas=(beta1, 0.999), fused=True)
        self.averages = [array.detach().clone() for array in parameters]

    def update(self, loss):
        self.adam.zero_grad(set_to_none=True)
        gradients = self.torch.autograd.grad(loss, self.parameters)
        for array, gradient in zip(self.parameters, gradients):
            array.grad = gradient
        self.torch.nn.utils.clip_grad_norm_(self.parameters, self.norm)
        self.adam.step()
        if self.average is not None:
            with self.torch.no_grad():
                self.torch._foreach_lerp_(self.averages, self.parameters, 1.0 - self.average)


def gaussian(torch, out, shift, least):
    """Mean and log σ from the two halves of a layer's output."""
    mean, log_std = out.chunk(2, -1)
    return mean, (log_std + shift).clamp(least, MOST_LOG_STD_DEV)


def divergence(mean, log_std, prior_mean, prior_log_std):
    """KL between diagonal Gaussians, of every set."""
    square = (2 * log_std).exp() + (mean - prior_mean).square()
    terms = prior_log_std - log_std + 0.5 * square * (-2 * prior_log_std).exp() - 0.5
    return terms.sum(1)


def ade_step(torch, settings, device, form):
    """A step of the preset paper/cloud. `paper`: every point beside a copy of θ; `factored`: θ once."""
    linear, relu = torch.nn.functional.linear, torch.relu
    model, sampler = settings["model"], settings["model"]["sampler"]
    sets, points = settings["batch_size"], settings["data"]["num_points"]
    latent, temperature = model["latent_dim"], model["temperature"]
    precision = 1.0 / model["base_std_dev"] ** 2
    data = torch.randn(sets, points, SPACE, device=device)

    encoder = stack(torch, device, [SPACE, *model["encoder_widths"]])
    head = stack(torch, device, [model["encoder_widths"][-1], *model["head_widths"], 2 * latent])
    energy = stack(torch, device, [SPACE + latent, *model["energy_widths"], 1])
    # One left singular vector of every weight, which a power iteration moves on in every step.
    lefts = [torch.nn.functional.normalize(torch.randn(w.shape[0], device=device), dim=0)
             for w, _ in energy]

    def normalised(is_trained):
        """Every weight over its largest singular value, and the last one over τ as well."""
        layers = []
        for number, (weight, bias) in enumerate(energy):
            if not is_trained:
                weight, bias = weight.detach(), bias.detach()
            with torch.no_grad():
                right = torch.nn.functional.normalize(weight.T @ lefts[number], dim=0)
                lefts[number] = torch.nn.functional.normalize(weight @ right, dim=0)
            weight = weight / torch.dot(lefts[number], weight @ right)
            layers.append((weight, bias))
        weight, bias = layers[-1]
        return [*layers[:-1], (weight / temperature, bias / temperature)]

    def potential(x, theta, layers):
        weight, bias = layers[0]
        if form == "paper":
            inputs = torch.cat([x, theta[:, None, :].expand(-1, x.shape[1], -1)], -1)
            hidden = linear(inputs, weight, bias)
        else:
            shift = linear(theta, weight[:, SPACE:], bias)[:, None, :]
            hidden = linear(x, weight[:, :SPACE]) + shift
        values = through(torch, layers[1:], relu(hidden), relu).squeeze(-1)
        return values - (0.5 * precision) * x.square().sum(-1)

    state, block = sampler["block_state"], sampler["block_elements"]
    numbers, count = block * SPACE, sampler["num_draws"]
    wide, narrow = BLOCK_INPUT_WIDTHS
    reads = stack(torch, device, [numbers, wide, narrow])
    begins = stack(torch, device, [latent, 2 * state])
    cell = torch.nn.LSTMCell(narrow, state, device=device)
    widths = [state + latent, *sampler["block_widths"]]
    hidden_layers = [stack(torch, device, pair) for pair in zip(widths, widths[1:])]
    norms = [torch.nn.BatchNorm1d(width, device=device) for width in widths[1:]]
    writes = stack(torch, device, [widths[-1], 2 * numbers])
    steps = sampler["num_dynamics_steps"]
    log_sizes = torch.full((steps,), math.log(sampler["step_size"]), device=device)
    log_sizes.requires_grad_()
    of_sampler = flat(reads, begins, *hidden_layers, writes) + [log_sizes]
    of_sampler += list(cell.parameters()) + [p for norm in norms for p in norm.parameters()]

    def generate(theta):
        """Blocks of points, one after the other, with the log density of every point."""
        hidden, memory = through(torch, begins, theta, relu).chunk(2, -1)
        hidden, memory = hidden.contiguous(), memory.contiguous()
        last = torch.zeros(sets, numbers, device=device)
        values, densities = [], []
        for _ in range(-(-count // block)):
            hidden, memory = cell(through(torch, reads, last, relu), (hidden, memory))
            out = torch.cat([hidden, theta], -1)
            for layer, norm in zip(hidden_layers, norms):
                # Batch statistics need two sets.
                out = linear(out, *layer[0])
                out = relu(norm(out) if sets > 1 else out)
            mean, log_std = through(torch, writes, out, relu).chunk(2, -1)
            log_std = (log_std - 1.0).clamp(*BLOCK_LOG_STD_DEV)
            noise = torch.randn_like(mean)
            last = mean + log_std.exp() * noise
            terms = -0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)
            values.append(last.view(sets, block, SPACE))
            densities.append(terms.view(sets, block, SPACE).sum(-1))
        return torch.cat(values, 1)[:, :count], torch.cat(densities, 1)[:, :count]

    def draw(theta, layers):
        """Draws that followed the energy, and their log density with that of the momenta."""
        x, density = generate(theta)
        clip, noise_scale = sampler["clip"], sampler["noise"]
        sizes = log_sizes.exp()
        for step in range(steps):
            value = potential(x, theta, layers).sum()
            gradient = torch.autograd.grad(value, x, create_graph=True)[0].clamp(-clip, clip)
            noise = noise_scale * torch.randn_like(x)
            velocity = noise + 0.5 * sizes[step] * gradient
            gained = velocity.square().sum(-1) - noise.square().sum(-1)
            density = density + (0.5 / noise_scale ** 2) * gained
            x = x + velocity
        return x, density

    everything = flat(encoder, head, energy)
    train = Optimiser(torch, everything, model["learning_rate"], model["beta1"],
                      model["max_gradient_norm"], model["average_decay"])
    train_sampler = Optimiser(torch, of_sampler, sampler["learning_rate"], sampler["beta1"],
                              model["max_gradient_norm"])

    def step():
        pooled = relu(through(torch, encoder, data, relu)).amax(1)
        mean, log_std = gaussian(torch, through(torch, head, pooled, relu),
                                 model["first_log_std_dev"], model["least_log_std_dev"])
        theta = mean + log_std.exp() * torch.randn_like(mean)
        zeros = torch.zeros_like(mean)
        kl = divergence(mean, log_std, zeros, zeros).mean() / points

        fixed = theta.detach()
        for _ in range(sampler["updates_per_step"]):
            layers = normalised(False)
            x, density = draw(fixed, layers)
            train_sampler.update((density - potential(x, fixed, layers)).mean())
        layers = normalised(True)
        fake = potential(x.detach(), theta, layers).mean()
        real = potential(data, theta, layers).mean()
        train.update(fake - real + model["kl_weight"] * kl)

    return step


def mnist_step(torch, settings, device):
    """A step of the preset mnist, θ once per picture in every hidden layer of the energy."""
    linear, silu = torch.nn.functional.linear, torch.nn.functional.silu
    model, tasks = settings["model"], settings["tasks"]
    side, sets = settings["data"]["side"], tasks["num_pictures"]
    places, targets = side * side, min(model["likelihood_points"], side * side)
    latent, levels = model["latent_dim"], model["levels"]
    codes, cells = model["local_dim"], model["local_side"]
    local = codes * cells * cells

    # What the batch holds: brightness and masks of all pixels and of the given ones, places of the
    # targets, their levels and what they see of what is given.
    window = (2 * model["window"] + 1) ** 2 - 1 + (BLURS if model["smooths"] else 0)
    num_features = 2 * (1 + 2 * model["location_frequencies"]) + 2 * window
    brightness = torch.rand(sets, places, device=device)
    is_given = (torch.rand(sets, places, device=device) < 0.2).float()
    whole = torch.stack([torch.ones_like(brightness), brightness], -1).flatten(1)
    given = torch.stack([is_given, is_given * brightness], -1).flatten(1)
    sizes = torch.zeros(sets, 1, device=device)
    features = torch.randn(sets, targets, num_features, device=device)
    asked = torch.randint(places, (sets, targets), device=device)
    symbols = torch.randint(levels, (sets, targets), device=device)
    # The four cells around a place, and their weights.
    around = torch.randint(cells * cells, (places, 4), device=device)
    shares = torch.full((places, 4), 0.25, device=device)

    num_pooled = model["encoder_widths"][0] + 1
    table = stack(torch, device, [2 * places, model["encoder_widths"][0]])
    head = stack(torch, device, [num_pooled, *model["head_widths"], 2 * latent])
    of_cells = stack(torch, device, [latent + num_pooled, *model["head_widths"], 2 * local])
    widths = [num_features + codes, *model["energy_widths"], model["embedding_dim"], levels]
    energy = stack(torch, device, widths)
    contexts = [stack(torch, device, [latent, width])[0] for width in widths[1:-1]]
    everything = flat(table, head, of_cells, energy, contexts)
    train = Optimiser(torch, everything, model["learning_rate"], model["beta1"],
                      model["max_gradient_norm"], model["average_decay"])

    def read(rows):
        pooled = torch.cat([silu(through(torch, table, rows, silu)), sizes], -1)
        out = through(torch, head, pooled, silu)
        return pooled, gaussian(torch, out, model["first_log_std_dev"],
                                model["least_log_std_dev"])

    def read_cells(theta, pooled):
        out = through(torch, of_cells, torch.cat([theta, pooled], -1), silu)
        return gaussian(torch, out, 0.0, model["least_log_std_dev"])

    def step():
        (pooled, law), (seen, prior) = read(whole), read(given)
        theta = law[0] + law[1].exp() * torch.randn_like(law[0])
        of_all, of_given = read_cells(theta, pooled), read_cells(theta, seen)
        z = of_all[0] + of_all[1].exp() * torch.randn_like(of_all[0])
        kl = divergence(*law, *prior) + divergence(*of_all, *of_given)
        near = z.view(sets, cells * cells, codes)
        picked = near.gather(1, around[asked].view(sets, -1, 1).expand(-1, -1, codes))
        painted = (picked.view(sets, targets, 4, codes) * shares[asked][..., None]).sum(2)
        hidden = torch.cat([features, painted], -1)
        for layer, context in zip(energy, contexts):
            hidden = silu(linear(hidden, *layer) + linear(theta, *context)[:, None, :])
        mass = torch.log_softmax(linear(hidden, *energy[-1]), -1).gather(-1, symbols[..., None])
        train.update(model["kl_weight"] * kl.mean() / places - mass.mean())

    return step


def main():
    import torch

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report", help="what `ebp bench --json` printed")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="timed runs (default: 3)")
    arguments = parser.parse_args()
    with open(arguments.report) as file:
        settings = preset_settings(json.load(file))
    torch.manual_seed(0)
    for name, step in torch_steps(torch, settings, torch.device(arguments.device)).items():
        times = []
        for _ in range(1 + arguments.runs):
            begin = time.perf_counter()
            step()
            if arguments.device != "cpu":
                torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) * 1e3)
        print(f"{name}: {sorted(times[1:])[len(times[1:]) // 2]:.3f} ms")


def preset_settings(report):
    """The settings of the presets' steps in a report, by case."""
    return {case["name"]: case["settings"] for case in report["cases"] if case.get("settings")}


if __name__ == "__main__":
    main()
