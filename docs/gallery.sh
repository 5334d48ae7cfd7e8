#!/bin/sh
# Makes every picture of docs/figures.md, in docs/pictures/figures, from models/chairs and the built-in shapes:
#     cargo build --release && docs/gallery.sh
# EBP names the program, THREADS its threads. Takes a few minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
ebp=${EBP:-target/release/ebp}
threads=${THREADS:-2}
out=docs/pictures/figures
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
sample() { "$ebp" sample models/chairs --picture "$work/sheet.png" --threads "$threads" -q "$@"; }
render() { "$ebp" render "$@" --threads "$threads" -q; }

# Twelve chairs of models/chairs, in the colours of PointFlow's figures.
sample -n 12 --seed 1 -o "$work/chairs.npy"
render "$work/chairs.npy" --colour place --columns 6 --size 240x240 -o "$out/chairs.png"

# A built-in chair of 20,000 points.
"$ebp" data shapes --class chair -n 6 --points 20000 "$work/dense" > "$work/said"
render "$work/dense/chair.npy" --first 5 --count 1 --size 720x720 --quality high -o "$out/dense.png"

# How likely the points of generated chairs are.
"$ebp" score models/chairs "$work/chairs.npy" --points "$work/density.npy" --threads "$threads" -q > "$work/said"
render "$work/chairs.npy" --values "$work/density.npy" --name "log p" --map magma --range=-6,3 \
    --first 1 --count 4 --size 340x340 -o "$out/density.png"

# The same cloud after 0 to 40 annealed steps.
mkdir "$work/steps"
for steps in 00 03 10 40; do
    sample -n 1 --seed 5 --steps "$steps" -o "$work/steps/$steps.npy"
done
render "$work/steps" --steps --label "no step" --label "3 steps" --label "10 steps" --label "40 steps" \
    --size 340x340 -o "$out/steps.png"

# For slides, for papers, and a turn.
"$ebp" data shapes --class airplane,car,lamp,table -n 4 --points 4096 "$work/shapes" > "$work/said"
mkdir "$work/four"
for shape in airplane car lamp table; do
    "$ebp" data shapes --class "$shape" -n 1 --seed 3 --points 4096 "$work/one" > "$work/said"
    mv "$work/one/$shape.npy" "$work/four"
done
render "$work/four" --background dark --size 340x340 --names -o "$out/dark.png"
render "$work/chairs.npy" --first 4 --count 3 --size 300x300 --radius 0.03 --colour sand -o "$out/row.svg"
render "$work/chairs.npy" --first 1 --count 1 --turntable 24 --size 220x220 --quality draft -o "$out/turn.apng"
ls -l "$out"
