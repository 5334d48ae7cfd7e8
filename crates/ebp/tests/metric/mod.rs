//! A second implementation of every set metric in plain loops, by the definitions.
#![allow(dead_code, reason = "each test file uses a part of it")]

use ebp::metric::distance::ArrangedCloud;

/// Points, one by one.
pub(crate) type Points = Vec<Vec<f64>>;

/// A set by formula, as `tools/reference/set_metrics.py` has it.
pub(crate) fn formula(number: f64, size: usize, dim: usize) -> Points {
    let coordinate = |i: usize, k: usize| {
        let (i, k) = (i as f64, k as f64);
        0.35 * (1.7 * i + 0.9 * k + number).sin()
            + 0.1 * (5.3 * i * (k + 1.0) + 2.0 * number).cos()
            + 0.02 * number
    };
    (0..size).map(|i| (0..dim).map(|k| coordinate(i, k)).collect()).collect()
}

pub(crate) fn arranged(points: &[Vec<f64>]) -> ArrangedCloud {
    ArrangedCloud::new(points[0].len(), &points.concat()).expect("finite points")
}

pub(crate) fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn nearest(x: &[Vec<f64>], y: &[Vec<f64>]) -> Vec<f64> {
    x.iter().map(|x| y.iter().map(|y| squared(x, y)).fold(f64::INFINITY, f64::min)).collect()
}

pub(crate) fn chamfer(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    mean(nearest(x, y)) + mean(nearest(y, x))
}

pub(crate) fn chamfer_sum(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
    nearest(x, y).into_iter().chain(nearest(y, x)).map(f64::sqrt).sum()
}

pub(crate) fn hausdorff(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
    nearest(x, y).into_iter().chain(nearest(y, x)).fold(0.0, f64::max).sqrt()
}

/// The exact earth mover's distance: every point is repeated until both sets have as many as their
/// least common multiple, and the assignment is solved by the Hungarian algorithm.
pub(crate) fn exact(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let size = x.len() / gcd(x.len(), y.len()) * y.len();
    let cost = |i: usize, j: usize| squared(&x[i % x.len()], &y[j % y.len()]).sqrt();
    assignment(size, cost) / size as f64
}

/// The least total cost of a permutation, by shortest augmenting paths in O(n³).
fn assignment(n: usize, cost: impl Fn(usize, usize) -> f64) -> f64 {
    let (mut u, mut v) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let mut row_of = vec![0; n + 1];
    for row in 1..=n {
        row_of[0] = row;
        let (mut least, mut before) = (vec![f64::INFINITY; n + 1], vec![0; n + 1]);
        let mut is_done = vec![false; n + 1];
        let mut column = 0;
        while row_of[column] != 0 {
            is_done[column] = true;
            let (i, mut delta, mut next) = (row_of[column], f64::INFINITY, 0);
            for j in (1..=n).filter(|&j| !is_done[j]) {
                let reduced = cost(i - 1, j - 1) - u[i] - v[j];
                if reduced < least[j] {
                    (least[j], before[j]) = (reduced, column);
                }
                if least[j] < delta {
                    (delta, next) = (least[j], j);
                }
            }
            for j in 0..=n {
                if is_done[j] {
                    u[row_of[j]] += delta;
                    v[j] -= delta;
                } else {
                    least[j] -= delta;
                }
            }
            column = next;
        }
        while column != 0 {
            row_of[column] = row_of[before[column]];
            column = before[column];
        }
    }
    (1..=n).map(|j| cost(row_of[j] - 1, j - 1)).sum()
}

/// The soft matching in f64, step by step: mean distance and mean squared distance.
pub(crate) fn approxmatch(x: &[Vec<f64>], y: &[Vec<f64>]) -> (f64, f64) {
    let (n, m) = (x.len(), y.len());
    let largest = n.max(m) as f64;
    let (mut left, mut right) = (vec![largest / n as f64; n], vec![largest / m as f64; m]);
    let (mut distance, mut square) = (0.0, 0.0);
    for j in (-1..=7).rev() {
        let level = 4_f64.powi(j);
        let kernel: Vec<Vec<f64>> =
            x.iter().map(|x| y.iter().map(|y| (-level * squared(x, y)).exp()).collect()).collect();
        let row: Vec<f64> = (0..n)
            .map(|i| left[i] / (1e-9 + (0..m).map(|j| kernel[i][j] * right[j]).sum::<f64>()))
            .collect();
        let taken: Vec<f64> =
            (0..m).map(|j| right[j] * (0..n).map(|i| row[i] * kernel[i][j]).sum::<f64>()).collect();
        let column: Vec<f64> =
            (0..m).map(|j| (right[j] / (taken[j] + 1e-9)).min(1.0) * right[j]).collect();
        for j in 0..m {
            right[j] = (right[j] - taken[j]).max(0.0);
        }
        for i in 0..n {
            let weights: Vec<f64> = (0..m).map(|j| kernel[i][j] * row[i] * column[j]).collect();
            for (j, weight) in weights.iter().enumerate() {
                square += weight * squared(&x[i], &y[j]);
                distance += weight * squared(&x[i], &y[j]).sqrt();
            }
            left[i] = (left[i] - weights.iter().sum::<f64>()).max(0.0);
        }
    }
    (distance / largest, square / largest)
}

/// Minimum matching distance, coverage and 1-NN accuracy from the matrix of all distances.
pub(crate) fn collection(
    samples: &[Points],
    references: &[Points],
    distance: impl Fn(&[Vec<f64>], &[Vec<f64>]) -> f64,
) -> [f64; 3] {
    let pooled: Vec<&Points> = samples.iter().chain(references).collect();
    let matrix: Vec<Vec<f64>> =
        pooled.iter().map(|a| pooled.iter().map(|b| distance(a, b)).collect()).collect();
    let (s, all) = (samples.len(), pooled.len());
    let least = |i: usize, range: std::ops::Range<usize>| {
        let others = range.filter(|&j| j != i).map(|j| (matrix[i][j], j));
        others.min_by(|a, b| a.0.total_cmp(&b.0)).expect("another set")
    };
    let matching = (s..all).map(|r| least(r, 0..s).0).sum::<f64>() / references.len() as f64;
    let mut covered: Vec<usize> = (0..s).map(|i| least(i, s..all).1).collect();
    covered.sort_unstable();
    covered.dedup();
    let is_right = |i: usize| (least(i, 0..all).1 < s) == (i < s);
    let num_right = (0..all).filter(|&i| is_right(i)).count();
    [matching, covered.len() as f64 / references.len() as f64, num_right as f64 / all as f64]
}
