#!/bin/sh
# Makes the pictures of the pages.
#
#   docs/gallery.sh            those of docs/figures.md and docs/torn.md, from models/chairs and the built-in shapes: minutes
#   docs/gallery.sh trained    those of models that learn from built-in data: tens of minutes on two cores
#   docs/gallery.sh others     prints which command makes each of the rest, which need data, hours or a GPU
#
# EBP names the program, by default target/release/ebp, THREADS its threads.
set -eu
cd "$(dirname "$0")/.."
ebp=${EBP:-target/release/ebp}
threads=${THREADS:-2}
part=${1:-figures}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Trains in a folder of its own: PRESET and further arguments.
train() {
    rm -rf "$work/run"
    "$ebp" train "$@" --out "$work/run" --threads "$threads" -q > "$work/said"
}

# Keeps a picture of that run: its name there, and here.
keep() { cp "$work/run/$1" "docs/pictures/$2"; }

case $part in
    figures) ;;
    trained)
        train sines
        keep plots/density.png sines.png
        "$ebp" calibrate "$work/run" --threads "$threads" -q > "$work/said"
        keep plots/calibration.png calibration-sines.png
        train shapes
        keep plots/clouds.png shapes.png
        train sticks --seed 1
        keep plots/sets.png sticks_sets.png
        keep plots/energies.png sticks_energies.png
        train rings --seed 1
        keep plots/sets.png rings_sets.png
        train pairwise
        keep plots/potential.png pair_potential.png
        train lda
        keep plots/topics.png topics_bars.png
        train arcs
        keep plots/sets.png latents/arcs.png
        "$ebp" reproduce figure1 --out "$work/figure1" --threads "$threads" -q > "$work/said"
        cp "$work/figure1/figure1.png" docs/pictures/figure1.png
        exit 0 ;;
    others)
        cat <<'END'
docs/pictures, with the command of the page that shows it:
  speeds.png                docs/regression.md: awk, ebp train; runs/speeds/plots/density.png
  shapes_samples.png        docs/clouds.md: ebp train shapes of 2,500 steps, ebp sample
  completion.png            docs/completion.md: ebp reproduce completion --seconds 30
  completion_{mnist,faces}_large.png   docs/completion.md: ebp reproduce mnist|celeba --preset mnist-large|celeba-large
  calibration-el-nino.png   docs/calibration.md: tools/data/el_nino.py, ebp train, ebp calibrate
  calibration-digits.png    docs/calibration.md: ebp calibrate models/digits, in a folder with mnist/
  topics_classes.png        docs/topics.md: ebp train lda --data 20news.feat, 50 topics
  redwood_*.png             docs/patterns.md: ebp train geyer --data redwood.dat
  latents/{gplvm,bruno,statistician}.png   docs/latents.md, the command above each
  view_*.png                docs/view.md: tools/browser/check --pictures docs/pictures
docs/results: the command above each picture of docs/results/README.md; curves by ebp plot
END
        exit 0 ;;
    *) echo "expected figures, trained or others, found $part" >&2; exit 2 ;;
esac

out=docs/pictures/figures
mkdir -p "$out"
sample() { "$ebp" sample models/chairs --picture "$work/sheet.png" --threads "$threads" -q "$@"; }
render() { "$ebp" render "$@" --threads "$threads" -q; }

# Twelve chairs of models/chairs, in the colours of PointFlow's figures.
sample -n 12 --seed 1 -o "$work/chairs.npy"
render "$work/chairs.npy" --colour place --columns 6 --size 220x220 --radius 0.034 -o "$out/chairs.png"

# A built-in chair of 20,000 points.
"$ebp" data shapes --class chair -n 6 --points 20000 "$work/dense" > "$work/said"
render "$work/dense/chair.npy" --first 5 --count 1 --size 720x720 --quality high -o "$out/dense.png"

# How likely the points of generated chairs are.
"$ebp" score models/chairs "$work/chairs.npy" --draws 0 --proposals 2048 --points "$work/density.npy" --threads "$threads" -q > "$work/said"
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

# docs/torn.md.
python3 tools/data/torn.py "$work/torn.png" "$work/holes.png"
"$ebp" complete models/digits --image "$work/torn.png" --mask "$work/holes.png" --resize -k 8 \
    --out "$work/completions" --threads "$threads" -q > "$work/said"
cp "$work/completions/grid.png" docs/pictures/torn.png
ls -l "$out"
