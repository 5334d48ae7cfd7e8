//! Convolutions and their transposes, on grids that windows leave on all sides.

use ebp::tape::Convolution;

use super::{Case, Outputs, random, scaled};

/// Visits every pair of a place of the coarser and one of the finer grid that a window joins: both
/// places, and the number of the window.
fn visit(
    grid: (usize, usize),
    side: usize,
    stride: usize,
    mut see: impl FnMut(usize, usize, usize),
) {
    let (width, height) = grid;
    let coarse = (width.div_ceil(stride), height.div_ceil(stride));
    for i in 0..coarse.1 {
        for j in 0..coarse.0 {
            for number in 0..side * side {
                // s i + a − r, where the grid has such a place.
                let row = (stride * i + number / side).checked_sub(side / 2);
                let column = (stride * j + number % side).checked_sub(side / 2);
                let (Some(row), Some(column)) = (row, column) else { continue };
                if row < height && column < width {
                    see(i * coarse.0 + j, row * width + column, number);
                }
            }
        }
    }
}

fn case(
    grid: (usize, usize),
    side: usize,
    stride: usize,
    sets: usize,
    channels: usize,
) -> [Case; 2] {
    let window = Convolution::new(grid, side, stride).unwrap();
    let coarse = window.coarse();
    let (num_fine, num_coarse) = (grid.0 * grid.1, coarse.0 * coarse.1);
    let weights = || scaled("w", (side * side, channels), 0.5);
    let name = format!("{side} x {side} on {grid:?}, stride {stride}, {sets} sets of {channels}");
    [false, true].map(|is_transposed| {
        let (inner, outer) =
            if is_transposed { (num_coarse, num_fine) } else { (num_fine, num_coarse) };
        Case::new(
            format!("{} {name}", if is_transposed { "transposed" } else { "convolution" }),
            vec![random("x", (sets * inner, channels)), weights()],
            move |tape, vars| {
                let found = if is_transposed {
                    tape.convolve_transposed(vars[0], vars[1], window)?
                } else {
                    tape.convolve(vars[0], vars[1], window)?
                };
                Ok(Outputs::from(found))
            },
            move |inputs| {
                let (x, w) = (&inputs[0], &inputs[1]);
                let mut out = vec![0.0; sets * outer * channels];
                for set in 0..sets {
                    visit(grid, side, stride, |coarse, fine, number| {
                        let (from, to) =
                            if is_transposed { (coarse, fine) } else { (fine, coarse) };
                        for c in 0..channels {
                            let x = x[(set * inner + from) * channels + c];
                            let term = w[number * channels + c] * x;
                            out[(set * outer + to) * channels + c] += term;
                        }
                    });
                }
                vec![out]
            },
        )
    })
}

/// Every side that is unrolled and some that are not, strides, and grids smaller than the window.
pub(crate) fn convolutions() -> Vec<Case> {
    [
        case((5, 4), 3, 1, 2, 3),
        case((6, 5), 5, 1, 1, 18),
        case((3, 2), 7, 1, 2, 1),
        case((4, 9), 9, 1, 1, 2),
        case((3, 3), 1, 1, 2, 4),
        case((3, 5), 11, 1, 1, 2),
        case((5, 4), 3, 2, 2, 3),
        case((6, 7), 5, 2, 1, 17),
        case((7, 3), 3, 3, 1, 2),
        case((1, 1), 3, 2, 3, 2),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// More channels than a warp, more pictures than parts: devices judge each other.
pub(crate) fn large() -> Vec<Case> {
    [case((28, 28), 5, 1, 5, 40), case((29, 27), 3, 2, 9, 70), case((32, 32), 7, 1, 3, 33)]
        .into_iter()
        .flatten()
        .collect()
}
