//! Built-in rows and sets whose law is known, so that models can be told how near they came.
//!
//! ```text
//! ring       rows of 12 columns on a circle: sin(a + d/2) + 0.3 cos(2a − d/2) + 0.1 ξ, a uniform
//! bent       sets of the plane: z_d ~ T(5, 0, (1 − ρ_d) I + ρ_d 11ᵀ), x = (z₁, z₂ + ½ (z₁² − 1))
//! arcs       sets of the plane: φ uniform, t_i uniform on ±1, x = (cos, sin)(φ + 0.8 t) + 0.1 ξ, t unseen
//! families   sets of numbers: exponential, Gaussian, uniform or Laplace with a mean from U(−1, 1) and a
//!            variance from U(½, 2), as Edwards and Storkey draw them
//! ```
//!
//! The joint density of `bent` is closed, since bending keeps volumes; that of `families` is an integral
//! over mean and variance, that of `arcs` over φ and every t, by the midpoint rule.

use crate::linalg::log_sum_exp;
use crate::process::bruno::{ExchangeableLaw, draw_exchangeable};
use crate::rng::Stream;

/// Columns of the ring.
const COLUMNS: usize = 12;
/// Arcs of the ring that rows are labelled with.
const ARCS: usize = 8;
/// Cells of the integrals over mean and variance.
const CELLS: [usize; 2] = [400, 150];

/// Laws of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownSets {
    Bent,
    Families,
    Arcs,
}

fn bent_laws() -> [ExchangeableLaw; 2] {
    [0.7, 0.3].map(|correlation| ExchangeableLaw {
        mean: 0.0,
        variance: 1.0,
        correlation,
        degrees: Some(5.0),
    })
}

impl KnownSets {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "bent" => Some(Self::Bent),
            "families" => Some(Self::Families),
            "arcs" => Some(Self::Arcs),
            _ => None,
        }
    }

    pub(super) fn dim(self) -> usize {
        match self {
            Self::Bent | Self::Arcs => 2,
            Self::Families => 1,
        }
    }

    /// A set `[size, d]`.
    pub(super) fn draw(self, size: usize, stream: Stream) -> Vec<f32> {
        match self {
            Self::Bent => {
                let mut set = draw_exchangeable(&bent_laws(), 1, size, stream);
                for point in set.chunks_exact_mut(2) {
                    point[1] += 0.5 * (point[0] * point[0] - 1.0);
                }
                set
            }
            Self::Families => draw_family(size, stream),
            Self::Arcs => draw_arc(size, stream),
        }
    }

    /// log p of a set `[n, d]`.
    pub(super) fn log_density(self, set: &[f32]) -> f64 {
        match self {
            Self::Bent => {
                let [first, second] = bent_laws();
                let points = set.chunks_exact(2).map(|point| [0, 1].map(|d| f64::from(point[d])));
                let straight = points.clone().map(|[x, y]| y - 0.5 * (x * x - 1.0));
                first.log_density(points.map(|[x, _]| x)) + second.log_density(straight)
            }
            Self::Families => log_families(set),
            Self::Arcs => log_arcs(set),
        }
    }
}

/// Half of an arc's angle, the noise beside it, and cells of the integrals over φ and t.
const HALF_ANGLE: f64 = 0.8;
const ARC_NOISE: f64 = 0.1;
const ARC_CELLS: [usize; 2] = [180, 48];

/// Points beside an arc of the unit circle.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn draw_arc(size: usize, stream: Stream) -> Vec<f32> {
    let (mut turn, mut places, mut noise) = ([0.0_f32], vec![0.0_f32; size], vec![0.0; 2 * size]);
    stream.child(0).fill_uniform(0, 0, &mut turn);
    stream.child(1).fill_uniform(0, 0, &mut places);
    stream.child(2).fill_normal(0, 0, &mut noise);
    let middle = std::f64::consts::TAU * f64::from(turn[0]);
    let point = |(place, noise): (&f32, &[f32])| {
        let angle = middle + HALF_ANGLE * (2.0 * f64::from(*place) - 1.0);
        let near = |x: f64, xi: f32| (x + ARC_NOISE * f64::from(xi)) as f32;
        [near(angle.cos(), noise[0]), near(angle.sin(), noise[1])]
    };
    places.iter().zip(noise.chunks_exact(2)).flat_map(point).collect()
}

/// log (1/2π) ∫ ∏ᵢ ½ ∫ N(xᵢ; (cos, sin)(φ + 0.8 t), 0.1² I) dt dφ.
fn log_arcs(set: &[f32]) -> f64 {
    let [turns, places] = ARC_CELLS;
    let log_height = -(std::f64::consts::TAU * ARC_NOISE * ARC_NOISE).ln();
    let middle = |turn: usize| {
        let middle = std::f64::consts::TAU * turn as f64 / turns as f64;
        let nodes: Vec<[f64; 2]> = (0..places)
            .map(|place| {
                let t = 2.0 * (place as f64 + 0.5) / places as f64 - 1.0;
                let (sine, cosine) = (middle + HALF_ANGLE * t).sin_cos();
                [cosine, sine]
            })
            .collect();
        let element = |point: &[f32]| {
            let [x, y] = [f64::from(point[0]), f64::from(point[1])];
            let square = |node: &[f64; 2]| (x - node[0]).powi(2) + (y - node[1]).powi(2);
            let logs: Vec<f64> =
                nodes.iter().map(|node| -0.5 * square(node) / ARC_NOISE.powi(2)).collect();
            log_sum_exp(&logs) - (places as f64).ln() + log_height
        };
        set.chunks_exact(2).map(element).sum::<f64>()
    };
    let terms: Vec<f64> = (0..turns).map(middle).collect();
    log_sum_exp(&terms) - (turns as f64).ln()
}

/// Elements of one family.
fn draw_family(size: usize, stream: Stream) -> Vec<f32> {
    let mut law = [0.0_f32; 3];
    stream.child(0).fill_uniform(0, 0, &mut law);
    let (mean, std_dev) = (2.0 * law[1] - 1.0, (0.5 + 1.5 * law[2]).sqrt());
    let (mut uniforms, mut normals) = (vec![0.0_f32; size], vec![0.0_f32; size]);
    stream.child(1).fill_uniform(0, 0, &mut uniforms);
    stream.child(2).fill_normal(0, 0, &mut normals);
    let standard = |(u, xi): (&f32, &f32)| match law[0] {
        // Mean 1 and variance 1, less 1. 1 − u is never 0.
        family if family < 0.25 => -(1.0 - u).ln() - 1.0,
        family if family < 0.5 => *xi,
        family if family < 0.75 => 3_f32.sqrt() * (2.0 * u - 1.0),
        // Laplace's law of scale b has variance 2b²; both sides are exponential.
        _ if *u < 0.5 => (1.0 - 2.0 * u).max(f32::MIN_POSITIVE).ln() * 0.5_f32.sqrt(),
        _ => -(2.0 - 2.0 * u).ln() * 0.5_f32.sqrt(),
    };
    uniforms.iter().zip(&normals).map(|pair| mean + std_dev * standard(pair)).collect()
}

/// log ¼ Σ_family ∫∫ ∏ᵢ p(xᵢ | m, s²) dm ds²/(2 · 1.5).
fn log_families(set: &[f32]) -> f64 {
    let numbers: Vec<f64> = set.iter().map(|&x| f64::from(x)).collect();
    let n = numbers.len() as f64;
    let (sum, squares) = numbers.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut terms = Vec::with_capacity(4 * CELLS[0] * CELLS[1]);
    for i in 0..CELLS[0] {
        let mean = -1.0 + 2.0 * (i as f64 + 0.5) / CELLS[0] as f64;
        let apart: f64 = numbers.iter().map(|x| (x - mean).abs()).sum();
        let form = squares - 2.0 * mean * sum + n * mean * mean;
        for j in 0..CELLS[1] {
            let variance = 0.5 + 1.5 * (j as f64 + 0.5) / CELLS[1] as f64;
            let s = variance.sqrt();
            terms.push(-0.5 * (n * (std::f64::consts::TAU * variance).ln() + form / variance));
            terms.push(-n * (2_f64.sqrt() * s).ln() - 2_f64.sqrt() * apart / s);
            if low >= mean - s {
                terms.push(-n * s.ln() - (sum - n * (mean - s)) / s);
            }
            if low >= mean - 3_f64.sqrt() * s && high <= mean + 3_f64.sqrt() * s {
                terms.push(-n * (12_f64.sqrt() * s).ln());
            }
        }
    }
    log_sum_exp(&terms) - (4.0 * (CELLS[0] * CELLS[1]) as f64).ln()
}

/// `count` rows of the ring `[count, 12]`, and their angles.
pub(super) fn ring(count: usize, stream: Stream) -> (Vec<f64>, Vec<f64>) {
    let (mut turns, mut noise) = (vec![0.0_f32; count], vec![0.0_f32; count * COLUMNS]);
    stream.child(0).fill_uniform(0, 0, &mut turns);
    stream.child(1).fill_normal(0, 0, &mut noise);
    let angles: Vec<f64> = turns.iter().map(|&u| std::f64::consts::TAU * f64::from(u)).collect();
    let places = (0..count).flat_map(|i| (0..COLUMNS).map(move |d| (i, d)));
    let value = |(i, d): (usize, usize)| {
        let (angle, phase) = (angles[i], 0.5 * d as f64);
        let noise = f64::from(noise[i * COLUMNS + d]);
        (angle + phase).sin() + 0.3 * (2.0 * angle - phase).cos() + 0.1 * noise
    };
    (places.map(value).collect(), angles)
}

/// The arc of an angle, as a label.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a turn is in [0, 1)")]
pub(super) fn arc(angle: f64) -> String {
    let arc = (angle / std::f64::consts::TAU * ARCS as f64) as usize;
    format!("arc {}", arc.min(ARCS - 1))
}

/// The share of the variance of (cos a, sin a) that an affine map of the latents explains: 1 where the
/// circle was recovered up to rotation, scale and shear.
pub(super) fn recovered(latents: &[f64], dim: usize, angles: &[f64]) -> crate::Result<f64> {
    use crate::linalg::{Cholesky, Matrix};
    let n = angles.len();
    let centred = |column: &dyn Fn(usize) -> f64| -> Vec<f64> {
        let mean = (0..n).map(column).sum::<f64>() / n as f64;
        (0..n).map(|i| column(i) - mean).collect()
    };
    let inputs: Vec<Vec<f64>> = (0..dim).map(|d| centred(&|i| latents[i * dim + d])).collect();
    let targets = [centred(&|i| angles[i].cos()), centred(&|i| angles[i].sin())];
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let factor = Cholesky::new(Matrix::zeros(dim, dim), |products| {
        for (j, b) in inputs.iter().enumerate() {
            for (i, a) in inputs.iter().enumerate() {
                products.column_mut(j)[i] = dot(a, b);
            }
        }
    })?;
    let (mut explained, mut total) = (0.0, 0.0);
    for target in &targets {
        let mut right = Matrix::zeros(dim, 1);
        right.entries_mut().iter_mut().zip(&inputs).for_each(|(sum, a)| *sum = dot(a, target));
        factor.solve_lower(&mut right);
        explained += dot(right.entries(), right.entries());
        total += dot(target, target);
    }
    Ok(explained / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One point of `arcs` has a ring as its law: its density integrates to 1, and at radius r it is the
    /// Bessel form (1/2πσ²) exp(−(r² + 1)/2σ²) I₀(r/σ²), by its asymptotic series.
    #[test]
    fn one_point_of_an_arc_lies_on_a_ring() {
        let mut mass = 0.0;
        for i in 0..70 {
            for j in 0..70 {
                let [x, y] = [i, j].map(|k| -1.75 + 0.05 * (k as f32 + 0.5));
                mass += 0.05 * 0.05 * log_arcs(&[x, y]).exp();
            }
        }
        assert!((mass - 1.0).abs() < 1e-3, "{mass}");
        for radius in [0.8_f32, 1.0, 1.2] {
            let r = f64::from(radius);
            let z = r / 0.01;
            let series = 1.0 + 1.0 / (8.0 * z) + 9.0 / (128.0 * z * z);
            let bessel = z - 0.5 * (std::f64::consts::TAU * z).ln() + series.ln();
            let expected = -(std::f64::consts::TAU * 0.01).ln() - (r * r + 1.0) / 0.02 + bessel;
            let found = log_arcs(&[radius * 0.6, radius * 0.8]);
            // The coordinates round to 1e-7 of a slope of up to 20.
            assert!((found - expected).abs() < 1e-4, "{r}: {found} {expected}");
        }
    }

    /// The marginal of one number of `families` integrates to 1, and its moments are those of the mixture:
    /// mean 0, variance E s² + Var m = 1.25 + 1/3.
    #[test]
    fn densities_of_families_integrate_to_one() {
        let nodes: Vec<f32> = (0..1200).map(|k| -12.0 + 0.02 * (k as f32 + 0.5)).collect();
        let mut moments = [0.0; 3];
        for x in nodes {
            let density = 0.02 * log_families(&[x]).exp();
            let x = f64::from(x);
            moments[0] += density;
            moments[1] += density * x;
            moments[2] += density * x * x;
        }
        // The exponential's tail beyond 12 has a mass of e⁻⁹; edges of uniforms fall within cells.
        assert!((moments[0] - 1.0).abs() < 1e-3, "{moments:?}");
        assert!(moments[1].abs() < 3e-3, "{moments:?}");
        assert!((moments[2] - 1.25 - 1.0 / 3.0).abs() < 2e-2, "{moments:?}");
    }

    /// Draws have the moments of the law: variance of one number 19/12 over 4000 sets of one number.
    #[test]
    fn draws_of_families_follow_them() {
        let stream = Stream::new(2, "families");
        let draws: Vec<f64> =
            (0..4000).map(|i| f64::from(draw_family(1, stream.child(i))[0])).collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 4000.0;
        // Standard errors: √(1.583/4000), and √((κ − 1) 1.583²/4000) with a kurtosis κ below 8.
        assert!(mean.abs() < 4.0 * 0.0199, "{mean}");
        assert!((variance - 1.583).abs() < 4.0 * 0.0663, "{variance}");
    }

    #[test]
    fn affine_images_of_a_circle_are_recovered_and_others_are_not() {
        let (_, angles) = ring(50, Stream::new(1, "ring"));
        let sheared: Vec<f64> =
            angles.iter().flat_map(|a| [3.0 + a.cos(), 0.5 * a.cos() - 2.0 * a.sin()]).collect();
        assert!((recovered(&sheared, 2, &angles).unwrap() - 1.0).abs() < 1e-12);
        let other: Vec<f64> =
            angles.iter().flat_map(|a| [(7.0 * a).cos(), (9.0 * a).sin()]).collect();
        assert!(recovered(&other, 2, &angles).unwrap() < 0.5);
    }
}
