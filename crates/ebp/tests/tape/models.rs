//! Gaussians, alphabets, planar flows, memory cells, normalisations and attention.

use std::sync::Arc;

use ebp::point::{ContextAt, MlpConfig, MlpShape};
use ebp::rng::Stream;
use ebp::tape::{AttentionSets, Gaussian, Operators, Order, Shape, Var};

use super::{Case, Input, Outputs, fixed, random, scaled, widen};

pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in [(1, 1), (3, 5), (9, 17)] {
        cases.extend([draw(shape), kl(shape), lstm_cell(shape), normalise_columns(shape)]);
        cases.extend([log_density(shape), arrange(shape)]);
    }
    for shape in [(1, 2), (4, 7), (70, 33)] {
        cases.extend([log_mass(shape), softmax(shape), log_sums(shape)]);
    }
    // Dimensions, layers, draws and rows; small layers meet the series of r(s) near zero.
    for (dims, layers, draws, rows) in [(1, 4, 16, 3), (1, 1, 1, 1), (2, 3, 5, 4), (3, 2, 33, 2)] {
        for scale in [0.1, 1.0] {
            cases.push(planar((dims, layers), (draws, rows), scale));
        }
    }
    for moves in [false, true] {
        cases.extend([spectral_norm(4, moves), spectral_norm(0, moves)]);
    }
    let ragged: &[(usize, usize)] = &[(2, 5), (3, 1), (0, 2), (2, 0), (4, 4)];
    for (sizes, width, num_heads) in [(&ragged[..1], 3, 1), (ragged, 6, 2), (ragged, 20, 4)] {
        cases.push(attention(sizes, width, num_heads));
    }
    cases
}

fn gaussian(vars: &[Var]) -> Gaussian {
    Gaussian { mean: vars[0], log_std_dev: vars[1] }
}

/// θ = μ + σ ξ
fn draw(shape: Shape) -> Case {
    let stream = Stream::new(5, "theta");
    Case::new(
        format!("draw {shape:?}"),
        vec![random("mean", shape), scaled("log_std_dev", shape, 0.5)],
        move |tape, vars| Ok(tape.draw(gaussian(vars), stream)?.into()),
        move |inputs| {
            let noise = |i: usize| f64::from(stream.normal(0, i as u64));
            let entry = |i: usize| inputs[0][i] + inputs[1][i].exp() * noise(i);
            vec![(0..inputs[0].len()).map(entry).collect()]
        },
    )
}

/// −½ ((x − μ)/σ)² − log σ − ½ log 2π
fn log_density(shape: Shape) -> Case {
    Case::new(
        format!("log_density {shape:?}"),
        vec![random("mean", shape), scaled("log_std_dev", shape, 0.5), random("values", shape)],
        |tape, vars| Ok(tape.log_density(vars[2], gaussian(vars))?.into()),
        |inputs| {
            let entry = |i: usize| {
                let z = (inputs[2][i] - inputs[0][i]) / inputs[1][i].exp();
                -0.5 * (z * z + std::f64::consts::TAU.ln()) - inputs[1][i]
            };
            vec![(0..inputs[0].len()).map(entry).collect()]
        },
    )
}

/// Columns from right to left, the last two exchanged.
fn arrange(shape: Shape) -> Case {
    let mut from: Vec<usize> = (0..shape.1).rev().collect();
    if let [.., a, b] = &mut from[..] {
        std::mem::swap(a, b);
    }
    let order = Arc::new(Order::new(&from).unwrap());
    Case::new(
        format!("arrange {shape:?}"),
        vec![random("x", shape)],
        move |tape, vars| Ok(tape.arrange(vars[0], &order)?.into()),
        move |inputs| {
            let rows = inputs[0].chunks(shape.1);
            vec![rows.flat_map(|row| from.iter().map(|&j| row[j]).collect::<Vec<_>>()).collect()]
        },
    )
}

/// log σ_p/σ_q + (σ_q² + (μ_q − μ_p)²)/(2 σ_p²) − ½
fn kl(shape: Shape) -> Case {
    Case::new(
        format!("kl {shape:?}"),
        vec![
            random("mean", shape),
            scaled("log_std_dev", shape, 0.5),
            random("prior mean", shape),
            scaled("prior log_std_dev", shape, 0.3),
        ],
        |tape, vars| Ok(tape.kl(gaussian(vars), gaussian(&vars[2..]))?.into()),
        |inputs| {
            let entry = |i: usize| {
                let (m, s, pm, ps) = (inputs[0][i], inputs[1][i], inputs[2][i], inputs[3][i]);
                let squares = s.exp().powi(2) + (m - pm).powi(2);
                ps - s + squares / (2.0 * ps.exp().powi(2)) - 0.5
            };
            vec![(0..inputs[0].len()).map(entry).collect()]
        },
    )
}

fn log_sum_exp(row: &[f64]) -> f64 {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + row.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
}

fn log_mass(shape: Shape) -> Case {
    let (rows, size) = shape;
    let symbols: Arc<Vec<u32>> =
        Arc::new((0..rows).map(|row| u32::try_from(row * 5 % size).unwrap()).collect());
    let chosen = Arc::clone(&symbols);
    Case::new(
        format!("log_mass {shape:?}"),
        vec![scaled("potentials", shape, 2.0)],
        move |tape, vars| Ok(tape.log_mass(vars[0], &symbols)?.into()),
        move |inputs| {
            let rows = inputs[0].chunks(size).zip(chosen.iter());
            vec![rows.map(|(row, &x)| row[x as usize] - log_sum_exp(row)).collect()]
        },
    )
}

fn log_sums(shape: Shape) -> Case {
    Case::new(
        format!("log_sum_exp {shape:?}"),
        vec![scaled("potentials", shape, 2.0)],
        |tape, vars| {
            Ok(Outputs { tracked: vec![tape.log_sum_exp(vars[0])?], constants: Vec::new() })
        },
        move |inputs| vec![inputs[0].chunks(shape.1).map(log_sum_exp).collect()],
    )
}

fn softmax(shape: Shape) -> Case {
    Case::new(
        format!("softmax {shape:?}"),
        vec![scaled("potentials", shape, 2.0)],
        |tape, vars| Ok(Outputs { tracked: Vec::new(), constants: vec![tape.softmax(vars[0])?] }),
        move |inputs| {
            let shares = |row: &[f64]| {
                let log_partition = log_sum_exp(row);
                row.iter().map(|x| (x - log_partition).exp()).collect::<Vec<_>>()
            };
            vec![inputs[0].chunks(shape.1).flat_map(shares).collect()]
        },
    )
}

/// x' = x + r(s) u tanh(w·x + b), log q' = log q − log(1 + (1 − h²) m(s)).
fn planar((dims, layers): (usize, usize), (draws, rows): (usize, usize), scale: f32) -> Case {
    let stream = Stream::new(9, "draws");
    let width = layers * (2 * dims + 1);
    Case::new(
        format!("planar d = {dims}, {layers} layers of size {scale}, {draws} draws, {rows} rows"),
        vec![scaled("layers", (rows, width), scale)],
        move |tape, vars| {
            let found = tape.planar(vars[0], dims, draws, stream)?;
            Ok(Outputs { tracked: vec![found.values, found.log_density], constants: Vec::new() })
        },
        move |inputs| {
            let (mut values, mut log_densities) = (Vec::new(), Vec::new());
            for draw in 0..rows * draws {
                let start = (draw * dims) as u64;
                let noise = (0..dims as u64).map(|k| f64::from(stream.normal(0, start + k)));
                let mut x: Vec<f64> = noise.collect();
                let half_log_tau = 0.5 * std::f64::consts::TAU.ln();
                let mut log_q: f64 = x.iter().map(|z| -0.5 * z * z - half_log_tau).sum();
                let row = &inputs[0][draw / draws * width..][..width];
                for layer in row.chunks(2 * dims + 1) {
                    let (w, u, b) = (&layer[..dims], &layer[dims..2 * dims], layer[2 * dims]);
                    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
                    let s: f64 = dot(w, u);
                    // softplus(s + ln(e − 1)) − 1, written so that small s keeps its digits.
                    let m = (1.0_f64 - (-1.0_f64).exp()).mul_add(s.exp_m1(), 0.0).ln_1p();
                    let at: f64 = dot(w, &x);
                    let h = (at + b).tanh();
                    log_q -= (1.0 + (1.0 - h * h) * m).ln();
                    for (x, u) in x.iter_mut().zip(u) {
                        *x += m / s * u * h;
                    }
                }
                values.extend(x);
                log_densities.push(log_q);
            }
            vec![values, log_densities]
        },
    )
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn lstm_cell(shape: Shape) -> Case {
    let (rows, width) = shape;
    Case::new(
        format!("lstm_cell {shape:?}"),
        vec![random("gates", (rows, 4 * width)), random("state", shape)],
        |tape, vars| {
            let (hidden, memory) = tape.lstm_cell(vars[0], vars[1])?;
            Ok(Outputs { tracked: vec![hidden, memory], constants: Vec::new() })
        },
        move |inputs| {
            let (mut hidden, mut memory) = (Vec::new(), Vec::new());
            for (at, c) in inputs[1].iter().enumerate() {
                let gate = |g: usize| inputs[0][at / width * 4 * width + g * width + at % width];
                let next = sigmoid(gate(1)) * c + sigmoid(gate(0)) * gate(2).tanh();
                memory.push(next);
                hidden.push(sigmoid(gate(3)) * next.tanh());
            }
            vec![hidden, memory]
        },
    )
}

/// x̂ = (x − m)/√(v + floor)
fn normalise_columns((rows, columns): Shape) -> Case {
    // One row alone has no variance: the largest slope of all, 1/√floor.
    let shape = (rows + 1, columns);
    Case::new(
        format!("normalise_columns {shape:?}"),
        vec![random("x", shape)],
        |tape, vars| {
            let (standard, mean, scale) = tape.normalise_columns(vars[0])?;
            Ok(Outputs { tracked: vec![standard], constants: vec![mean, scale] })
        },
        move |inputs| {
            let n = shape.0 as f64;
            let column = |c: usize| (0..shape.0).map(move |row| inputs[0][row * columns + c]);
            let mean: Vec<f64> = (0..columns).map(|c| column(c).sum::<f64>() / n).collect();
            let variance = |c: usize| column(c).map(|x| (x - mean[c]).powi(2)).sum::<f64>() / n;
            let floor = f64::from(1e-5_f32);
            let scale: Vec<f64> =
                (0..columns).map(|c| 1.0 / (variance(c) + floor).sqrt()).collect();
            let place = |(i, x): (usize, &f64)| (x - mean[i % columns]) * scale[i % columns];
            let standard = inputs[0].iter().enumerate().map(place).collect();
            vec![standard, mean, scale]
        },
    )
}

/// W / uᵀWv with u and v held fixed, which is what the gradient treats as constant.
fn spectral_norm(context_dim: usize, moves: bool) -> Case {
    let shape = MlpShape::new(MlpConfig {
        context_dim,
        hidden_widths: vec![7, 5],
        context_at: ContextAt::EveryLayer,
        ..MlpConfig::default()
    });
    let shape = shape.unwrap();
    let operators = Arc::new(Operators::new(&shape));
    let weights = random("weights", (1, shape.num_parameters()));
    let left = fixed(random("left", (1, operators.num_rows())));
    let pairs = Pairs::new(&shape, &weights.values, &left.values, moves);
    Case::new(
        format!("spectral_norm with context {context_dim}, moves: {moves}"),
        vec![weights, left],
        move |tape, vars| {
            let (normalised, left) = tape.spectral_norm(vars[0], vars[1], &operators, moves)?;
            Ok(Outputs { tracked: vec![normalised], constants: vec![left] })
        },
        move |inputs| vec![pairs.normalised(&inputs[0]), pairs.left.concat()],
    )
}

/// Left and right vectors of every layer's [W, C], after a plain power iteration.
struct Pairs {
    /// Places in the flat parameters of every row of every operator.
    rows: Vec<Vec<Vec<usize>>>,
    left: Vec<Vec<f64>>,
    right: Vec<Vec<f64>>,
}

impl Pairs {
    fn new(shape: &MlpShape, weights: &[f32], left: &[f32], moves: bool) -> Self {
        let weights = widen(weights);
        let mut pairs = Self { rows: Vec::new(), left: Vec::new(), right: Vec::new() };
        let mut first = 0;
        for layer in shape.layers() {
            let context_dim =
                layer.context_weight.as_ref().map_or(0, |_| shape.config().context_dim);
            let row = |row: usize| {
                let start = layer.weight.start + row * layer.inputs;
                let context = layer.context_weight.clone().map_or(0, |range| range.start);
                let context = context + row * context_dim;
                (start..start + layer.inputs).chain(context..context + context_dim).collect()
            };
            let rows: Vec<Vec<usize>> = (0..layer.outputs).map(row).collect();
            let mut u = unit(widen(&left[first..first + layer.outputs]));
            first += layer.outputs;
            let mut v = vec![0.0; rows[0].len()];
            for (u, row) in u.iter().zip(&rows) {
                row.iter().zip(&mut v).for_each(|(&at, v)| *v += u * weights[at]);
            }
            let v = unit(v);
            if moves {
                let entry = |row: &Vec<usize>| {
                    row.iter().zip(&v).map(|(&at, v)| weights[at] * v).sum::<f64>()
                };
                u = unit(rows.iter().map(entry).collect());
            }
            pairs.rows.push(rows);
            pairs.left.push(u);
            pairs.right.push(v);
        }
        pairs
    }

    fn normalised(&self, weights: &[f64]) -> Vec<f64> {
        let mut normalised = weights.to_vec();
        for ((rows, u), v) in self.rows.iter().zip(&self.left).zip(&self.right) {
            let dot =
                |row: &Vec<usize>| row.iter().zip(v).map(|(&at, v)| weights[at] * v).sum::<f64>();
            let norm: f64 = rows.iter().zip(u).map(|(row, u)| u * dot(row)).sum();
            rows.iter().flatten().for_each(|&at| normalised[at] = weights[at] / norm);
        }
        normalised
    }
}

fn unit(vector: Vec<f64>) -> Vec<f64> {
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

/// o_i = Σ_j softmax_j(⟨q_i, k_j⟩/√d_head) v_j within every set and head.
fn attention(sizes: &[(usize, usize)], width: usize, num_heads: usize) -> Case {
    let sizes = sizes.to_vec();
    let sets = Arc::new(AttentionSets::from_sizes(sizes.iter().copied()));
    let (queries, keys) = (sets.num_queries(), sets.num_keys());
    let inputs: Vec<Input> = vec![
        scaled("queries", (queries, width), 2.0),
        random("keys", (keys, width)),
        random("values", (keys, width)),
    ];
    Case::new(
        format!("attention {sizes:?} width {width}, {num_heads} heads"),
        inputs,
        move |tape, vars| Ok(tape.attention(vars[0], vars[1], vars[2], &sets, num_heads)?.into()),
        move |inputs| {
            let part = width / num_heads;
            let mut output = vec![0.0; queries * width];
            let (mut first_query, mut first_key) = (0, 0);
            for &(queries, keys) in &sizes {
                for i in first_query..first_query + queries {
                    for head in 0..num_heads {
                        let of = |input: usize, row: usize| {
                            &inputs[input][row * width + head * part..][..part]
                        };
                        let rows = first_key..first_key + keys;
                        let logit = |j: usize| {
                            let pairs = of(0, i).iter().zip(of(1, j));
                            pairs.map(|(q, k)| q * k).sum::<f64>() / (part as f64).sqrt()
                        };
                        let logits: Vec<f64> = rows.clone().map(logit).collect();
                        for (logit, j) in logits.iter().zip(rows) {
                            let weight = (logit - log_sum_exp(&logits)).exp();
                            let out = &mut output[i * width + head * part..][..part];
                            out.iter_mut().zip(of(2, j)).for_each(|(o, v)| *o += weight * v);
                        }
                    }
                }
                (first_query, first_key) = (first_query + queries, first_key + keys);
            }
            vec![output]
        },
    )
}
