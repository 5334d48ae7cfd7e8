//! Functions of single entries, sums and products, sums over parts, rows and columns.

use std::sync::Arc;

use ebp::tape::{Choice, Shape, Tape, Var};
use ebp::{Result, SetOffsets};

use super::{Case, Input, random};

/// One row, one column, and widths that are multiples of no vector.
const SHAPES: [Shape; 4] = [(1, 1), (1, 7), (5, 3), (19, 17)];

pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in SHAPES {
        cases.extend(maps(shape));
        cases.extend(joins(shape));
        cases.extend(sums(shape));
        cases.extend(columns(shape));
        cases.extend(chosen_rows(shape));
    }
    cases.extend(sets(&[1], 5));
    cases.extend(sets(&[3, 1, 6], 1));
    cases.extend(sets(&[2, 17, 1, 4], 33));
    cases
}

/// An operation that works on one input entry by entry.
fn map(
    name: &str,
    shape: Shape,
    build: impl Fn(&mut Tape, Var) -> Result<Var> + 'static,
    twin: impl Fn(f64) -> f64 + 'static,
) -> Case {
    Case::new(
        format!("{name} {shape:?}"),
        vec![random("x", shape)],
        move |tape, vars| Ok(build(tape, vars[0])?.into()),
        move |inputs| vec![inputs[0].iter().map(|&x| twin(x)).collect()],
    )
}

fn maps(shape: Shape) -> Vec<Case> {
    vec![
        map(
            "affine",
            shape,
            |tape, x| tape.affine(x, -1.7, 0.3),
            |x| f64::from(-1.7_f32) * x + f64::from(0.3_f32),
        ),
        map("exp", shape, Tape::exp, f64::exp),
        map("silu", shape, Tape::silu, |x| x / (1.0 + (-x).exp())),
        map("relu", shape, Tape::relu, |x| x.max(0.0)),
        map("square", shape, Tape::square, |x| x * x),
        map("tanh", shape, Tape::tanh, f64::tanh),
        map("softplus", shape, Tape::softplus, |x| x.exp().ln_1p()),
        map(
            "log of exp",
            shape,
            |tape, x| {
                let y = tape.exp(x)?;
                tape.log(y)
            },
            |x| x,
        ),
        map("clamp", shape, |tape, x| tape.clamp(x, -0.5, 0.75), |x| x.clamp(-0.5, 0.75)),
        Case::new(
            format!("scale_from {shape:?}"),
            vec![random("x", shape)],
            move |tape, vars| Ok(tape.scale_from(vars[0], shape.0 * shape.1 / 2, 2.5)?.into()),
            move |inputs| {
                let start = shape.0 * shape.1 / 2;
                let scale = |(i, x): (usize, &f64)| if i < start { *x } else { 2.5 * x };
                vec![inputs[0].iter().enumerate().map(scale).collect()]
            },
        ),
        Case::new(
            format!("reshape {shape:?}"),
            vec![random("x", shape)],
            move |tape, vars| Ok(tape.reshape(vars[0], (shape.1, shape.0))?.into()),
            <[Vec<f64>]>::to_vec,
        ),
        // A value that is used twice gets the sum of two gradients.
        Case::new(
            format!("x x + x {shape:?}"),
            vec![random("x", shape)],
            |tape, vars| {
                let square = tape.multiply(vars[0], vars[0])?;
                Ok(tape.add(square, vars[0])?.into())
            },
            |inputs| vec![inputs[0].iter().map(|x| x * x + x).collect()],
        ),
    ]
}

/// left ∘ right for every way in which a right operand may be spread.
fn joins((rows, columns): Shape) -> Vec<Case> {
    type Build = fn(&mut Tape, Var, Var) -> Result<Var>;
    type Twin = fn(f64, f64) -> f64;
    let kinds: [(&str, Build, Twin); 3] = [
        ("add", Tape::add, |a, b| a + b),
        ("subtract", Tape::subtract, |a, b| a - b),
        ("multiply", Tape::multiply, |a, b| a * b),
    ];
    let mut cases = Vec::new();
    for (name, build, twin) in kinds {
        for right in [(rows, columns), (rows, 1), (1, columns), (1, 1)] {
            cases.push(Case::new(
                format!("{name} ({rows}, {columns}) {right:?}"),
                vec![random("left", (rows, columns)), random("right", right)],
                move |tape, vars| Ok(build(tape, vars[0], vars[1])?.into()),
                move |inputs| {
                    let place = |index: usize| {
                        let (row, column) = (index / columns, index % columns);
                        (row % right.0) * right.1 + column % right.1
                    };
                    let entry = |(index, &a): (usize, &f64)| twin(a, inputs[1][place(index)]);
                    vec![inputs[0].iter().enumerate().map(entry).collect()]
                },
            ));
        }
    }
    cases
}

fn sums(shape: Shape) -> Vec<Case> {
    let (rows, columns) = shape;
    vec![
        Case::new(
            format!("sum {shape:?}"),
            vec![random("x", shape)],
            |tape, vars| Ok(tape.sum(vars[0])?.into()),
            |inputs| vec![vec![inputs[0].iter().sum()]],
        ),
        Case::new(
            format!("mean {shape:?}"),
            vec![random("x", shape)],
            |tape, vars| Ok(tape.mean(vars[0])?.into()),
            |inputs| vec![vec![inputs[0].iter().sum::<f64>() / inputs[0].len() as f64]],
        ),
        Case::new(
            format!("row_sums {shape:?}"),
            vec![random("x", shape)],
            |tape, vars| Ok(tape.row_sums(vars[0])?.into()),
            move |inputs| vec![inputs[0].chunks(columns).map(|row| row.iter().sum()).collect()],
        ),
        Case::new(
            format!("column_sums {shape:?}"),
            vec![random("x", shape)],
            |tape, vars| Ok(tape.column_sums(vars[0])?.into()),
            move |inputs| {
                let column = |c: usize| (0..rows).map(|row| inputs[0][row * columns + c]).sum();
                vec![(0..columns).map(column).collect()]
            },
        ),
    ]
}

/// Sums over sets, and rows of sets for their elements.
fn sets(sizes: &'static [usize], columns: usize) -> Vec<Case> {
    let offsets = Arc::new(SetOffsets::from_sizes(sizes.iter().copied()).unwrap());
    let (num_sets, total) = (offsets.num_sets(), offsets.num_elements());
    let (of_sums, of_spread) = (Arc::clone(&offsets), offsets);
    let owners: Vec<usize> = (0..total).map(|row| of_sums.set_of(row)).collect();
    let owners_again = owners.clone();
    vec![
        Case::new(
            format!("set_sums {sizes:?} x {columns}"),
            vec![random("x", (total, columns))],
            move |tape, vars| Ok(tape.set_sums(vars[0], &of_sums)?.into()),
            move |inputs| {
                let mut sums = vec![0.0; num_sets * columns];
                for (index, x) in inputs[0].iter().enumerate() {
                    sums[owners[index / columns] * columns + index % columns] += x;
                }
                vec![sums]
            },
        ),
        Case::new(
            format!("spread {sizes:?} x {columns}"),
            vec![random("x", (num_sets, columns))],
            move |tape, vars| Ok(tape.spread(vars[0], &of_spread)?.into()),
            move |inputs| {
                let row = |&set: &usize| inputs[0][set * columns..][..columns].to_vec();
                vec![owners_again.iter().flat_map(row).collect()]
            },
        ),
    ]
}

fn columns(shape: Shape) -> Vec<Case> {
    let (rows, width) = shape;
    let (start, cut) = (width / 3, width - width / 2);
    let mut cases = vec![Case::new(
        format!("columns {shape:?} {start}..{}", start + cut),
        vec![random("x", shape)],
        move |tape, vars| Ok(tape.columns(vars[0], start, cut)?.into()),
        move |inputs| {
            let rows = inputs[0].chunks(width);
            vec![rows.flat_map(|row| row[start..start + cut].to_vec()).collect()]
        },
    )];
    for widths in [vec![width, 1], vec![2, width, 5]] {
        let inputs: Vec<Input> =
            widths.iter().zip(["a", "b", "c"]).map(|(&w, name)| random(name, (rows, w))).collect();
        cases.push(Case::new(
            format!("concat {rows} rows of {widths:?}"),
            inputs,
            |tape, vars| Ok(tape.concat(vars)?.into()),
            move |inputs| {
                let part = |row: usize, part: usize| {
                    inputs[part][row * widths[part]..][..widths[part]].to_vec()
                };
                let row = |row: usize| (0..widths.len()).flat_map(move |p| part(row, p));
                vec![(0..rows).flat_map(row).collect()]
            },
        ));
    }
    cases
}

/// Rows chosen often, once and never.
fn chosen_rows(shape: Shape) -> Vec<Case> {
    let (rows, columns) = shape;
    let scattered: Vec<u32> =
        (0..2 * rows + 3).map(|i| u32::try_from(i * i % rows).unwrap()).collect();
    let choices = [
        ("scattered", Choice::new(rows, scattered.clone()).unwrap(), scattered),
        (
            "repeated",
            Choice::repeated(rows, 3).unwrap(),
            (0..3 * rows).map(|i| u32::try_from(i / 3).unwrap()).collect(),
        ),
    ];
    choices
        .into_iter()
        .map(|(name, choice, expected)| {
            let choice = Arc::new(choice);
            Case::new(
                format!("gather {name} {shape:?}"),
                vec![random("x", shape)],
                move |tape, vars| Ok(tape.gather(vars[0], &choice)?.into()),
                move |inputs| {
                    let row = |&row: &u32| inputs[0][row as usize * columns..][..columns].to_vec();
                    vec![expected.iter().flat_map(row).collect()]
                },
            )
        })
        .collect()
}
