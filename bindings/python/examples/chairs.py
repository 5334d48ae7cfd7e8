"""Generates chairs from trained weights and measures them. Usage: chairs.py models/chairs"""
import sys

import ebp

model = ebp.load(sys.argv[1])
chairs = model.sample(8, points=512, seed=1)
others = model.sample(8, points=512, seed=2, prior="standard")
found = ebp.metrics.compare(chairs, others, emd=None)
print("1-NNA of kernels against N(0, I)", found.chamfer.one_nn_accuracy)
print("chamfer", ebp.metrics.chamfer(chairs[0], chairs[1]))
distance = ebp.metrics.emd(chairs[0], chairs[1])
print("emd", distance, "gap", distance.gap, "by", distance.method)
print("nats per point", model.score(chairs[:2], draws=0))
open("chairs.png", "wb").write(ebp.contact_sheet(chairs))
