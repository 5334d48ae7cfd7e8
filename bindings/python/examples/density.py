"""Trains on a frame of a CSV file, draws the density and saves both. Usage: density.py TABLE.csv FOLDER"""
import sys

import pandas as pd

import ebp
import ebp.plot

table = pd.read_csv(sys.argv[1])  # columns t, x and perhaps set
model = ebp.Curves("table", {"train.num_steps": 300}, seed=1).fit(table)
one = table[table["set"] == table["set"].iloc[0]]
forecast = model.forecast(sorted(set(table["t"])), context=(one["t"], one["x"]))
axes = ebp.plot.density(forecast, context=(one["t"], one["x"]))
axes.figure.savefig(sys.argv[2] + "/density.png")
print(forecast.quantiles[:3], model.save(sys.argv[2] + "/model")["bytes"], "bytes")
