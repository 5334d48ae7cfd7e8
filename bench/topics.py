#!/usr/bin/env python3
"""Latent Dirichlet allocation of ebp, gensim, tomotopy and scikit-learn at equal time, on the same halves.

    python3 bench/topics.py --bow 20news.feat [--seconds 8] [--seeds 1,2,3] [--topics 20,50] [--ebp PATH]

Corpora: Reuters of the PyPI package `lda` (395 documents, 4,258 words), and a file of `label id:count` lines.
Every tenth document (the last of ten) is held out, half of its words observed, the other half scored: the rule
and the random numbers are those of `ebp train`, made again here. Everyone trains for `--seconds` on all cores.
Rivals are judged twice, with their own inference of a document's topics and with collapsed responsibilities
for their topics and priors, as ebp has them, and the better of the two is shown.

One line per corpus, number of topics and program: perplexity (mean over seeds, and every seed), sweeps over
the corpus per second. With the defaults it takes about ten minutes. Needs gensim, tomotopy, scikit-learn and
lda (tools/reference/requirements.txt). Quote it from an idle machine only.
"""

import argparse
import json
import logging
import pathlib
import subprocess
import tempfile
import time
import warnings

import numpy as np

PARTS, HELD_OUT_PART = 10, 9


def main():
    arguments = parse_arguments()
    from compare import build_ebp

    binary = arguments.ebp or build_ebp()
    programs = {"ebp": None, "tomotopy": tomotopy_lda, "scikit-learn": sklearn_lda, "gensim": gensim_lda}
    chosen = {name: programs[name] for name in arguments.programs or programs}
    print(f"{arguments.seconds} seconds each, seeds {arguments.seeds}\n")
    print("| corpus | topics | program | perplexity | seeds | sweeps/s |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        corpora = [("reuters", write_reuters(pathlib.Path(folder) / "reuters.feat"))]
        if arguments.bow:
            corpora.append((pathlib.Path(arguments.bow).stem, pathlib.Path(arguments.bow)))
        for name, path in corpora:
            documents = read(path)
            words = 1 + max(word for document in documents for word, _ in document)
            training = [d for i, d in enumerate(documents) if i % PARTS != HELD_OUT_PART]
            held_out = [d for i, d in enumerate(documents) if i % PARTS == HELD_OUT_PART]
            halves = [split(document, index) for index, document in enumerate(held_out)]
            for topics in arguments.topics:
                for program, fit in chosen.items():
                    found = []
                    for seed in arguments.seeds:
                        if fit is None:
                            found.append(ebp_lda(binary, path, topics, arguments.seconds, seed, folder))
                        else:
                            found.append(judge(fit, training, words, topics, arguments.seconds, seed, halves))
                    values = [value for value, _ in found]
                    rate = np.mean([rate for _, rate in found])
                    each = " ".join(f"{value:.1f}" for value in values)
                    print(f"| {name} | {topics} | {program} | {np.mean(values):.1f} | {each} | {rate:.2f} |", flush=True)


def parse_arguments():
    def several(kind):
        return lambda text: [kind(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bow", metavar="FILE", help="documents as `label id:count` lines")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--seeds", type=several(int), default=[1, 2, 3], metavar="N,...")
    parser.add_argument("--topics", type=several(int), default=[20, 50], metavar="K,...")
    parser.add_argument("--programs", type=several(str), metavar="NAME,...")
    parser.add_argument("--ebp", metavar="PATH", help="the ebp binary (default: build it)")
    return parser.parse_args()


def write_reuters(path):
    import lda.datasets

    with open(path, "w") as file:
        for row in lda.datasets.load_reuters():
            file.write("0 " + " ".join(f"{i + 1}:{c}" for i, c in enumerate(row) if c) + "\n")
    path.with_suffix(".vocab").write_text("\n".join(lda.datasets.load_reuters_vocab()) + "\n")
    return path


def read(path):
    documents = []
    for line in open(path):
        pairs = [part.split(":") for part in line.split()[1:]]
        if pairs:
            documents.append(sorted((int(word) - 1, int(count)) for word, count in pairs))
    return documents


# The random numbers of `ebp`: Philox4x32-10 with keys by SplitMix64's finaliser (crates/ebp/src/rng.rs).

MASK = (1 << 64) - 1


def mix(state):
    z = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream(seed, name):
    state = mix(seed)
    for byte in name.encode():
        state = mix(state ^ byte)
    return state


def child(key, number):
    return mix((key + mix(number)) & MASK)


def uniforms(key, count):
    groups = -(-count // 64)
    block = np.arange(groups * 16, dtype=np.uint64)
    words = [block & np.uint64(0xFFFFFFFF), block >> np.uint64(32), np.zeros_like(block), np.zeros_like(block)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [(p1 >> np.uint64(32)) ^ words[1] ^ np.uint64(k0), p1 & low,
                 (p0 >> np.uint64(32)) ^ words[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    lanes = np.stack([word.reshape(groups, 16) for word in words], axis=1)
    return (lanes.reshape(-1)[:count] >> np.uint64(8)) / 2.0**24


def split(document, index, seed=0):
    """The observed and the hidden half of a held-out document, as counts by word."""
    tokens = np.repeat([word for word, _ in document], [count for _, count in document])
    key = child(child(stream(seed, "held out"), index), 0)
    order = np.argsort(uniforms(key, len(tokens)), kind="stable")
    half = len(tokens) // 2
    return [np.unique(tokens[part], return_counts=True) for part in (order[:half], order[half:])]


def judge(fit, training, words, topics, seconds, seed, halves):
    """Perplexity with the better of two ways to infer a document's topics, and sweeps per second."""
    beta, alpha, infer, rate = fit(training, words, topics, seconds, seed)
    ways = [infer([observed for observed, _ in halves]), [collapsed(beta, alpha, *observed) for observed, _ in halves]]
    values = []
    for shares in ways:
        logs = count = 0.0
        for (_, (hidden, counts)), theta in zip(halves, shares):
            logs += counts @ np.log(theta @ beta[:, hidden])
            count += counts.sum()
        values.append(np.exp(-logs / count))
    return min(values), rate


def collapsed(beta, alpha, words, counts, rounds=100):
    """E theta by collapsed responsibilities of order 0 for given topics."""
    if len(words) == 0:
        return alpha / alpha.sum()
    means = beta[:, words].T
    own = alpha * means
    own /= own.sum(1, keepdims=True)
    for _ in range(rounds):
        sums = alpha + counts @ own
        new = np.maximum(sums - own, 0.0) * means
        new /= new.sum(1, keepdims=True)
        moved = np.abs(counts @ (new - own)).sum()
        own = new
        if moved < 1e-5 * counts.sum():
            break
    shares = alpha + counts @ own
    return shares / shares.sum()


def ebp_lda(binary, path, topics, seconds, seed, folder):
    """Calibrated by a short run, then as many sweeps as the time allows."""

    def run(steps):
        out = pathlib.Path(folder) / "run"
        command = [binary, "train", "lda", "--data", str(path), "--seed", str(seed), "--out", str(out), "--force",
                   "--json", "--quiet", "--set", f"lda.num_topics={topics}", "--set", f"train.num_steps={steps}",
                   "--set", f"evaluation.every={10 * steps}", "--set", f"train.checkpoint_every={10 * steps}"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    trial = run(20)
    steps = max(20, int(seconds * 20 / trial["seconds"]))
    found = run(steps)
    return found["perplexity"]["completion"]["value"], steps / found["seconds"]


def tomotopy_lda(training, words, topics, seconds, seed):
    import tomotopy

    model = tomotopy.LDAModel(k=topics, alpha=1.0 / topics, eta=0.05, seed=seed)
    for document in training:
        model.add_doc([str(word) for word, count in document for _ in range(count)])
    sweeps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        model.train(5, workers=0)
        sweeps += 5
    rate = sweeps / (time.perf_counter() - start)
    beta = np.full((topics, words), 0.0)
    place = [int(word) for word in model.used_vocabs]
    for topic in range(topics):
        beta[topic, place] = model.get_topic_word_dist(topic)
    # Words that no training document has get what an unseen word gets.
    missing = np.setdiff1d(np.arange(words), place)
    if len(missing):
        count = np.array([model.get_count_by_topics()[topic] for topic in range(topics)])
        beta[:, missing] = (model.eta / (count + words * model.eta))[:, None]
    beta /= beta.sum(1, keepdims=True)

    def infer(observed):
        alpha = np.array(model.alpha)
        shares = []
        for distinct, counts in observed:
            tokens = [str(word) for word, count in zip(distinct, counts) for _ in range(count)]
            document = model.make_doc(tokens) if tokens else None
            shares.append(np.array(model.infer(document, iterations=100)[0]) if tokens else alpha / alpha.sum())
        return shares

    return beta, np.array(model.alpha), infer, rate


def matrix(documents, words):
    from scipy.sparse import csr_matrix

    rows = [(i, word, count) for i, document in enumerate(documents) for word, count in document]
    i, word, count = np.array(rows, dtype=int).T if rows else np.zeros((3, 0), int)
    return csr_matrix((count, (i, word)), shape=(len(documents), words))


def sklearn_lda(training, words, topics, seconds, seed):
    from sklearn.decomposition import LatentDirichletAllocation

    x = matrix(training, words)

    def fit(sweeps, method):
        model = LatentDirichletAllocation(topics, learning_method=method, max_iter=sweeps, n_jobs=None,
                                          batch_size=256, random_state=seed, evaluate_every=-1,
                                          doc_topic_prior=1.0 / topics, topic_word_prior=0.05)
        start = time.perf_counter()
        model.fit(x)
        return model, time.perf_counter() - start

    _, trial = fit(2, "online")
    sweeps = max(2, int(2 * seconds / trial))
    model, taken = fit(sweeps, "online")
    beta = model.components_ / model.components_.sum(1, keepdims=True)

    def infer(observed):
        return model.transform(matrix([list(zip(*half)) for half in observed], words))

    return beta, np.full(topics, 1.0 / topics), infer, sweeps / taken


def gensim_lda(training, words, topics, seconds, seed):
    from gensim.models import LdaModel

    logging.getLogger("gensim").setLevel(logging.ERROR)
    model = LdaModel(num_topics=topics, id2word={word: str(word) for word in range(words)}, alpha="auto", eta="auto",
                     random_state=seed, eval_every=None, chunksize=256, passes=1)
    sweeps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        model.update(training)
        sweeps += 1
    rate = sweeps / (time.perf_counter() - start)

    def infer(observed):
        gamma, _ = model.inference([list(zip(*half)) for half in observed])
        return gamma / gamma.sum(1, keepdims=True)

    return np.float64(model.get_topics()), np.float64(model.alpha), infer, rate


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main()
