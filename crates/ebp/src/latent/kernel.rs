//! A law of θ that keeps to where codes are: kernels around them.
//!
//! ```text
//! u = Λ^−½ Vᵀ(θ − m),   p(u) = (1/n) Σᵢ ∏_j N(u_j; √(1 − h_j²) u_ij, h_j²),   Σ = V Λ Vᵀ
//! ```
//!
//! u_i are the codes' means in the principal directions of all codes. Shrinking them by √(1 − h²)
//! keeps the variance: h_j = 1 is the fitted Gaussian along direction j, h_j → 0 the codes
//! themselves. Every direction has its own bandwidth, by the likelihood of codes under the kernels
//! of all others (leave one out), so that nothing is gained by repeating a training set.
//! Draws are independent; kernels can be taken in turn instead.

use rayon::prelude::*;

use super::gaussian::saved;
use super::{Codes, LOG_ROOT_TAU, Prior, PriorState, check_rows};
use crate::linalg::{Matrix, log_sum_exp, symmetric_eigen};
use crate::rng::Stream;
use crate::tensor::Tensor;
use crate::{Error, Result};

/// How bandwidths are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelConfig {
    /// Steps of Adam.
    pub num_steps: usize,
    /// Codes per step; at least 1.
    pub batch_size: usize,
    /// Its rate on the logits of h, falling to 0 along a line.
    pub learning_rate: f64,
}

impl Default for KernelConfig {
    fn default() -> Self {
        Self { num_steps: 120, batch_size: 192, learning_rate: 0.1 }
    }
}

/// What fitting reached, in nats per code, each judged by the others' kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelFit {
    /// −log p of the fitted Gaussian, which saw these codes.
    pub gaussian_nll: f64,
    /// −log p of the kernels, each code's own left out.
    pub kernel_nll: f64,
}

/// A mixture of Gaussians around codes.
///
/// ```
/// use ebp::latent::{Codes, KernelConfig, KernelPrior, Prior};
/// use ebp::rng::Stream;
///
/// // Two groups of codes, at −3 and 3.
/// let mut means = vec![0.0; 200];
/// Stream::new(1, "codes").fill_normal(0, 0, &mut means);
/// for (place, mean) in means.iter_mut().enumerate() {
///     *mean += if place % 2 == 0 { 3.0 } else { -3.0 };
/// }
/// let codes = Codes::new(1, &means, None)?;
/// let (prior, fit) = KernelPrior::fit(&codes, &KernelConfig::default(), Stream::new(1, "prior"))?;
/// assert!(fit.kernel_nll < fit.gaussian_nll);
/// let log_p = prior.log_density(&[0.0, 3.0])?;
/// assert!(log_p[1] > log_p[0] + 1.0);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KernelPrior {
    mean: Vec<f32>,
    /// Rows v_j, `[k, k]`.
    directions: Vec<f32>,
    /// √λ_j.
    std_devs: Vec<f32>,
    /// h_j, in (0, 1].
    bandwidths: Vec<f32>,
    /// u_i, `[n, k]`.
    centres: Vec<f32>,
}

/// h stays between these: kernels neither vanish nor lose their centres altogether.
const SMALLEST_BANDWIDTH: f64 = 0.02;
const FIRST_BANDWIDTH: f64 = 0.8;
/// Kernels that weigh less do not count in a gradient.
const NEGLIGIBLE: f32 = 1e-7;
/// Draws of each code that the result is judged by.
const JUDGED_DRAWS: usize = 4;
/// Codes that are judged at most: each is compared with all the others.
const JUDGED_CODES: usize = 2048;

impl KernelPrior {
    /// Kernels around codes, with bandwidths of the highest likelihood.
    ///
    /// # Errors
    ///
    /// [`Error::NotPositiveDefinite`] if codes lie in fewer dimensions than they have and carry no
    /// noise.
    #[expect(clippy::cast_possible_truncation, reason = "stored in single precision")]
    pub fn fit(codes: &Codes, config: &KernelConfig, stream: Stream) -> Result<(Self, KernelFit)> {
        if config.batch_size == 0 {
            return Err(Error::invalid("batch_size", "at least 1", 0));
        }
        let (n, k) = (codes.len(), codes.dim());
        let rows: Vec<usize> = (0..n).collect();
        let mean = codes.mean(&rows);
        let (values, vectors) = symmetric_eigen(&codes.covariance(&rows, &mean), k);
        if let Some(row) = values.iter().position(|&value| value <= 0.0 || !value.is_finite()) {
            return Err(Error::NotPositiveDefinite { row, dim: k, jitter: 0.0 });
        }
        let narrow = |wide: Vec<f64>| wide.into_iter().map(|x| x as f32).collect::<Vec<f32>>();
        let mut prior = Self {
            mean: narrow(mean),
            directions: narrow(vectors),
            std_devs: narrow(values.into_iter().map(f64::sqrt).collect()),
            bandwidths: vec![FIRST_BANDWIDTH as f32; k],
            centres: Vec::new(),
        };
        prior.centres = prior.whiten(codes.means());
        prior.find_bandwidths(codes, config, stream.child(0));
        let apart = n.div_ceil(JUDGED_CODES);
        let judged: Vec<usize> =
            rows.iter().step_by(apart).flat_map(|&row| [row; JUDGED_DRAWS]).collect();
        let white = prior.whiten(&codes.draw(&judged, stream.child(1)));
        let gaussian: f64 = white.iter().map(|&u| 0.5 * f64::from(u * u) + LOG_ROOT_TAU).sum();
        let logs: Vec<f64> = white
            .par_chunks_exact(k)
            .zip(&judged)
            .map(|(u, &row)| prior.log_white_density(u, Some(row)))
            .collect();
        let fit = KernelFit {
            gaussian_nll: gaussian / judged.len() as f64 + prior.log_volume(),
            kernel_nll: prior.log_volume() - logs.iter().sum::<f64>() / judged.len() as f64,
        };
        Ok((prior, fit))
    }

    /// Adam on the logits of h, along the gradient of the leave-one-out likelihood.
    #[expect(clippy::cast_possible_truncation, reason = "stored in single precision")]
    fn find_bandwidths(&mut self, codes: &Codes, config: &KernelConfig, stream: Stream) {
        let (n, k) = (codes.len(), codes.dim());
        let first = ((FIRST_BANDWIDTH - SMALLEST_BANDWIDTH) / (1.0 - FIRST_BANDWIDTH)).ln();
        let (mut logits, mut first_moment, mut second_moment) =
            (vec![first; k], vec![0.0; k], vec![0.0; k]);
        for step in 0..config.num_steps {
            let stream = stream.child(step as u64);
            let chosen = stream.permutation(n);
            let rows = &chosen[..config.batch_size.min(n)];
            let white = self.whiten(&codes.draw(rows, stream.child(0)));
            let gradients: Vec<Vec<f64>> = white
                .par_chunks_exact(k)
                .zip(rows)
                .map(|(u, &row)| self.bandwidth_gradient(u, row))
                .collect();
            let rate = config.learning_rate * (1.0 - step as f64 / config.num_steps as f64);
            let count = 1 + i32::try_from(step).unwrap_or(i32::MAX - 1);
            for j in 0..k {
                let h = f64::from(self.bandwidths[j]);
                let share = (h - SMALLEST_BANDWIDTH) / (1.0 - SMALLEST_BANDWIDTH);
                let slope = (1.0 - SMALLEST_BANDWIDTH) * share * (1.0 - share);
                let sum: f64 = gradients.iter().map(|gradient| gradient[j]).sum();
                let gradient = slope * sum / rows.len() as f64;
                first_moment[j] = 0.9 * first_moment[j] + 0.1 * gradient;
                second_moment[j] = 0.99 * second_moment[j] + 0.01 * gradient * gradient;
                let move_by = first_moment[j] / (1.0 - 0.9_f64.powi(count));
                let scale = (second_moment[j] / (1.0 - 0.99_f64.powi(count))).sqrt();
                // Beyond ±12 a logit has no slope to come back by.
                logits[j] = (logits[j] - rate * move_by / (scale + 1e-12)).clamp(-12.0, 12.0);
                let share = 1.0 / (1.0 + (-logits[j]).exp());
                let h = SMALLEST_BANDWIDTH + (1.0 - SMALLEST_BANDWIDTH) * share;
                self.bandwidths[j] = h as f32;
            }
        }
    }

    /// −∂ log p(u)/∂h_j with the kernel of code `own` left out. With weights w_i of the kernels,
    /// a = √(1 − h²) and r_i = u − a u_i:
    ///
    /// ```text
    /// Σᵢ w_i [ 1/h − r_i²/h³ + r_i u_i/(a h) ]
    /// ```
    fn bandwidth_gradient(&self, u: &[f32], own: usize) -> Vec<f64> {
        let k = u.len();
        let mut weights = self.log_kernels(u);
        weights[own] = f32::NEG_INFINITY;
        let largest = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut total = 0.0;
        for weight in &mut weights {
            *weight = (*weight - largest).exp();
            total += *weight;
        }
        // E u_i and E u_i² over the kernels
        let (mut first, mut second) = (vec![0.0_f32; k], vec![0.0_f32; k]);
        for (centre, weight) in self.centres.chunks_exact(k).zip(&weights) {
            let share = weight / total;
            if share > NEGLIGIBLE {
                for ((first, second), c) in first.iter_mut().zip(&mut second).zip(centre) {
                    *first += share * c;
                    *second += share * c * c;
                }
            }
        }
        (0..k)
            .map(|j| {
                let h = f64::from(self.bandwidths[j]);
                // h = 1 is approached, never reached, but for rounding.
                let a = (1.0 - h * h).max(1e-12).sqrt();
                let (u, one, two) = (f64::from(u[j]), f64::from(first[j]), f64::from(second[j]));
                let rest = u * u - 2.0 * a * u * one + a * a * two;
                1.0 / h - rest / (h * h * h) + (u * one - a * two) / (a * h)
            })
            .collect()
    }

    /// log ∏_j N(u_j; a_j u_ij, h_j²) of every kernel, without its constant.
    fn log_kernels(&self, u: &[f32]) -> Vec<f32> {
        let k = u.len();
        // (u − a c)/h = u/h − c a/h
        let scaled: Vec<f32> = u.iter().zip(&self.bandwidths).map(|(u, h)| u / h).collect();
        let factors: Vec<f32> =
            self.bandwidths.iter().map(|h| (1.0 - h * h).max(0.0).sqrt() / h).collect();
        let square = |centre: &[f32]| -> f32 {
            let mut sums = [0.0_f32; 8];
            let whole = k / 8 * 8;
            for place in (0..whole).step_by(8) {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let j = place + lane;
                    let difference = scaled[j] - factors[j] * centre[j];
                    *sum += difference * difference;
                }
            }
            for j in whole..k {
                let difference = scaled[j] - factors[j] * centre[j];
                sums[0] += difference * difference;
            }
            sums.iter().sum()
        };
        self.centres.chunks_exact(k).map(|centre| -0.5 * square(centre)).collect()
    }

    /// log p(u), with the kernel of code `own` left out if one is given.
    fn log_white_density(&self, u: &[f32], own: Option<usize>) -> f64 {
        let mut logs: Vec<f64> = self.log_kernels(u).into_iter().map(f64::from).collect();
        if let Some(own) = own {
            logs.swap_remove(own);
        }
        let log_bandwidths: f64 = self.bandwidths.iter().map(|&h| f64::from(h).ln()).sum();
        log_sum_exp(&logs)
            - (logs.len() as f64).ln()
            - log_bandwidths
            - u.len() as f64 * LOG_ROOT_TAU
    }

    /// Σ_j log √λ_j.
    fn log_volume(&self) -> f64 {
        self.std_devs.iter().map(|&s| f64::from(s).ln()).sum()
    }

    /// u of every row.
    #[expect(clippy::cast_possible_truncation, reason = "stored in single precision")]
    fn whiten(&self, thetas: &[f32]) -> Vec<f32> {
        let k = self.mean.len();
        let white = |theta: &[f32]| -> Vec<f32> {
            let centred: Vec<f64> =
                theta.iter().zip(&self.mean).map(|(t, m)| f64::from(*t) - f64::from(*m)).collect();
            let along = |(direction, s): (&[f32], &f32)| {
                let dot: f64 = direction.iter().zip(&centred).map(|(v, c)| f64::from(*v) * c).sum();
                (dot / f64::from(*s)) as f32
            };
            self.directions.chunks_exact(k).zip(&self.std_devs).map(along).collect()
        };
        thetas.par_chunks_exact(k).flat_map_iter(white).collect()
    }

    /// What [`Prior::state`] gave.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a tensor is missing or has another shape.
    pub fn restore(state: &PriorState) -> Result<Self> {
        let read = |name: &str, shape: &dyn Fn(&[usize]) -> bool| -> Result<Vec<f32>> {
            let (values, dims) = saved(state, name)?;
            if !shape(dims) {
                let found = format!("{dims:?}");
                return Err(Error::invalid(name, "the shape of the other tensors", found));
            }
            Ok(values)
        };
        let mean = read("mean", &|dims| dims.len() == 1 && dims[0] > 0)?;
        let k = mean.len();
        Ok(Self {
            directions: read("directions", &|dims| dims == [k, k])?,
            std_devs: read("std_devs", &|dims| dims == [k])?,
            bandwidths: read("bandwidths", &|dims| dims == [k])?,
            centres: read("centres", &|dims| dims.len() == 2 && dims[0] > 0 && dims[1] == k)?,
            mean,
        })
    }

    /// θ of the kernels `chosen`.
    fn draw(&self, count: usize, chosen: impl Iterator<Item = usize>, stream: Stream) -> Vec<f32> {
        let k = self.dim();
        let mut noise = vec![0.0; count * k];
        stream.child(0).fill_normal(0, 0, &mut noise);
        let mut thetas = Vec::with_capacity(count * k);
        for (noise, number) in noise.chunks_exact(k).zip(chosen) {
            let mut theta: Vec<f64> = self.mean.iter().map(|&m| f64::from(m)).collect();
            for (j, xi) in noise.iter().enumerate() {
                let h = self.bandwidths[j];
                let u = (1.0 - h * h).max(0.0).sqrt() * self.centres[number * k + j] + h * xi;
                let along = f64::from(u * self.std_devs[j]);
                for (theta, v) in theta.iter_mut().zip(&self.directions[j * k..(j + 1) * k]) {
                    *theta += along * f64::from(*v);
                }
            }
            #[expect(clippy::cast_possible_truncation, reason = "codes are single precision")]
            thetas.extend(theta.into_iter().map(|theta| theta as f32));
        }
        thetas
    }

    /// h of every principal direction, the widest direction first.
    pub fn bandwidths(&self) -> &[f32] {
        &self.bandwidths
    }
}

impl Prior for KernelPrior {
    fn name(&self) -> &'static str {
        "kernels"
    }

    fn dim(&self) -> usize {
        self.mean.len()
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below n")]
    fn sample(&self, count: usize, stream: Stream) -> Result<Vec<f32>> {
        let n = self.centres.len() / self.dim();
        let mut uniforms = vec![0.0; count];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let chosen = uniforms.into_iter().map(|u| ((f64::from(u) * n as f64) as usize).min(n - 1));
        Ok(self.draw(count, chosen, stream))
    }

    /// Kernels are taken in a drawn order, none a second time before all were taken once: a collection
    /// has no near copies by the chance of one kernel drawn twice.
    fn sample_in_turn(&self, count: usize, stream: Stream) -> Result<Vec<f32>> {
        let n = self.centres.len() / self.dim();
        let rounds = (0..count.div_ceil(n) as u64).map(|round| stream.child(1 + round));
        Ok(self.draw(count, rounds.flat_map(|round| round.permutation(n)), stream))
    }

    fn log_density(&self, thetas: &[f32]) -> Result<Vec<f64>> {
        check_rows("thetas", thetas.len(), self.dim())?;
        let white = self.whiten(thetas);
        let volume = self.log_volume();
        let rows = white.par_chunks_exact(self.dim());
        Ok(rows.map(|u| self.log_white_density(u, None) - volume).collect())
    }

    fn log_density_left_out(&self, means: &[f32]) -> Result<Vec<f64>> {
        let (k, found) = (self.dim(), check_rows("means", means.len(), self.dim())?);
        if found * k != self.centres.len() {
            let expected = format!("the {} codes of the kernels", self.centres.len() / k);
            return Err(Error::invalid("means", expected, found));
        }
        let (white, volume) = (self.whiten(means), self.log_volume());
        let rows = white.par_chunks_exact(k).enumerate();
        Ok(rows.map(|(row, u)| self.log_white_density(u, Some(row)) - volume).collect())
    }

    /// The slope of the mixture, and the precision of one kernel: that of the mixture where one kernel
    /// counts, and above it elsewhere by no more than the centres that count are apart.
    fn slope(&self, theta: &[f32], _: &[f32]) -> Result<(Vec<f64>, Matrix)> {
        check_rows("theta", theta.len(), self.dim())?;
        let k = self.dim();
        let u = self.whiten(theta);
        let logs: Vec<f64> = self.log_kernels(&u).into_iter().map(f64::from).collect();
        let total = log_sum_exp(&logs);
        // −∂ log p/∂u_j = (u_j − a_j E u_ij)/h_j²
        let mut centre = vec![0.0; k];
        for (row, log) in self.centres.chunks_exact(k).zip(&logs) {
            let weight = (log - total).exp();
            row.iter().zip(&mut centre).for_each(|(c, sum)| *sum += weight * f64::from(*c));
        }
        let (mut slope, mut precision) = (vec![0.0; k], Matrix::zeros(k, k));
        for (j, direction) in self.directions.chunks_exact(k).enumerate() {
            let (h, s) = (f64::from(self.bandwidths[j]), f64::from(self.std_devs[j]));
            let a = (1.0 - h * h).max(0.0).sqrt();
            let along = -(f64::from(u[j]) - a * centre[j]) / (h * h * s);
            let narrow = 1.0 / (h * h * s * s);
            for (column, v) in direction.iter().enumerate() {
                slope[column] += along * f64::from(*v);
                let scaled = narrow * f64::from(*v);
                let entries = precision.column_mut(column);
                entries.iter_mut().zip(direction).for_each(|(p, w)| *p += scaled * f64::from(*w));
            }
        }
        Ok((slope, precision))
    }

    fn state(&self) -> Result<PriorState> {
        let k = self.dim();
        let tensor = |values: &[f32], shape: &[usize]| Tensor::new(shape.to_vec(), values.to_vec());
        Ok(PriorState::from([
            ("mean".to_owned(), tensor(&self.mean, &[k])?),
            ("directions".to_owned(), tensor(&self.directions, &[k, k])?),
            ("std_devs".to_owned(), tensor(&self.std_devs, &[k])?),
            ("bandwidths".to_owned(), tensor(&self.bandwidths, &[k])?),
            ("centres".to_owned(), tensor(&self.centres, &[self.centres.len() / k, k])?),
        ]))
    }
}
