//! Sets after training: draws of the first guess, weighed, then moved by the energy.
//!
//! ```text
//! weighed   of each K draws one is kept, with probability ∝ exp(u − L)
//! moved     y = x + (η/2) g(x) + √η ξ,   g = clip(∇u)
//!           accepted with min(1, exp(u(y) − u(x)) k(x|y)/k(y|x)), the whole set at once
//! ```
//!
//! L is the log density of a draw (`draw.rs`), so weighed draws have the energy's law in the limit of many, and steps
//! leave that law as it is at any step size: neither makes sets worse than the energy is. In the first half of the
//! steps η follows the share of accepted ones towards the best share of such chains; it is the same for all sets.
//!
//! Where the guess is the base, u = f + log q: draws weigh exp f, and sets move together with their hidden variable,
//! by the law exp(f(x)) q(x | z) q(z), whose marginal is the energy's. Before each step on x a new z is drawn from
//! r(z | x) and accepted with min(1, q(x|z′) q(z′) r(z|x) / (q(x|z) q(z) r(z′|x))).

use super::SetEnergyProcess;
use super::energy::Layout;
use crate::error::check_finite;
use crate::rng::Stream;
use crate::{Error, Result};

/// Sets that are drawn together: more would not be faster.
const DRAWN_TOGETHER: usize = 100;
/// The share of accepted steps that η aims at (Roberts and Rosenthal, 1998).
const BEST_SHARE: f64 = 0.574;
/// How far log η moves when a share is off by 1.
const PACE: f64 = 0.3;
const REMEDY: &str = "the energy has diverged: train it at a lower `model.learning_rate`";

/// How draws are brought to the energy's law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refining {
    /// K, draws of the first guess for one set; 1 takes them as they come.
    pub num_guesses: usize,
    /// Steps along ∇u.
    pub num_steps: usize,
}

impl Refining {
    /// The first guess as it is.
    pub const NONE: Self = Self { num_guesses: 1, num_steps: 0 };
}

/// Sets with their hidden variables, where they have any.
#[derive(Clone, Default)]
struct Drawn {
    /// `[sets, n, d]`.
    elements: Vec<f32>,
    /// z, `[sets, h]`.
    hidden: Option<Vec<f32>>,
}

/// Sets on their way, with what the next step needs of them.
struct Walkers {
    drawn: Drawn,
    /// u of every set.
    u: Vec<f32>,
    /// clip(∇u), as the elements.
    slope: Vec<f32>,
}

/// Takes row `row` of `from` in the place of that of `to`, of as many rows.
fn take_row(to: &mut [f32], from: &[f32], row: usize, rows: usize) {
    let width = to.len() / rows;
    to[row * width..][..width].copy_from_slice(&from[row * width..][..width]);
}

impl SetEnergyProcess {
    /// `num_sets` sets of `size` elements, `[num_sets, size, d]`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if a count is 0, [`Error::NonFinite`] if u is not finite at a draw.
    pub fn sample(
        &self,
        num_sets: usize,
        size: usize,
        refining: Refining,
        stream: Stream,
    ) -> Result<Vec<f32>> {
        let num_guesses = refining.num_guesses;
        if num_sets == 0 || size == 0 || num_guesses == 0 {
            let found =
                format!("{num_sets} sets of {size} elements, each of {num_guesses} guesses");
            return Err(Error::invalid("num_sets, size, num_guesses", "at least 1", found));
        }
        let mut sets = Vec::with_capacity(num_sets * size * self.config.element_dim);
        for (batch, start) in (0..num_sets).step_by(DRAWN_TOGETHER).enumerate() {
            let stream = stream.child(batch as u64);
            let layout = Layout::uniform(DRAWN_TOGETHER.min(num_sets - start), size)?;
            let mut drawn = self.weighed(&layout, num_guesses, stream)?;
            if refining.num_steps > 0 {
                drawn = self.walk(drawn, &layout, refining.num_steps, stream)?;
            }
            sets.extend(drawn.elements);
        }
        Ok(sets)
    }

    /// A draw for every set, one of `num_guesses` by their weights.
    fn weighed(&self, layout: &Layout, num_guesses: usize, stream: Stream) -> Result<Drawn> {
        let device = self.parameters.device();
        let (count, size) = (layout.offsets.num_sets(), layout.offsets.size(0));
        let (mut kept, mut largest, mut totals) = (Drawn::default(), Vec::new(), Vec::new());
        for number in 0..num_guesses as u64 {
            // The first one is what a single guess would be.
            let own = if number == 0 { stream } else { stream.child(100 + number) };
            let found = self.draw_alone((count, size), own)?;
            let mut tape = self.reader();
            let shape = self.shape(&layout.offsets);
            let elements = tape.constant(found.elements.clone(), shape)?;
            let u = self.compared(&mut tape, elements, layout)?;
            let u = tape.download(u)?;
            let is_base = self.energy.guess().is_some();
            let densities = device.download(&found.log_density)?;
            let log_weights: Vec<f32> =
                if is_base { u } else { u.iter().zip(&densities).map(|(u, l)| u - l).collect() };
            check_finite("log weights of guesses", &log_weights, REMEDY)?;
            let drawn = Drawn {
                elements: device.download(&found.elements)?,
                hidden: found.hidden.map(|z| device.download(&z)).transpose()?,
            };
            if number == 0 {
                (kept, largest, totals) = (drawn, log_weights, vec![1.0_f32; count]);
                continue;
            }
            // One of all so far, each with its weight: the new one with its share of their sum.
            let mut uniforms = vec![0.0; count];
            own.child(99).fill_uniform(0, 0, &mut uniforms);
            for (set, &log_weight) in log_weights.iter().enumerate() {
                let top = largest[set].max(log_weight);
                let weight = (log_weight - top).exp();
                totals[set] = totals[set] * (largest[set] - top).exp() + weight;
                largest[set] = top;
                if uniforms[set] * totals[set] < weight {
                    take_row(&mut kept.elements, &drawn.elements, set, count);
                    if let (Some(to), Some(from)) = (&mut kept.hidden, &drawn.hidden) {
                        take_row(to, from, set, count);
                    }
                }
            }
        }
        Ok(kept)
    }

    /// u with its gradient; the hidden variables count where the guess is the base.
    fn walkers(&self, drawn: Drawn, layout: &Layout) -> Result<Walkers> {
        let device = self.parameters.device();
        let elements = device.upload(drawn.elements.clone())?;
        let hidden = match &drawn.hidden {
            Some(hidden) => Some(device.upload(hidden.clone())?),
            None => None,
        };
        let [u, score] = self.energy.score(self.reader(), (elements, hidden), layout)?;
        let (u, score) = (device.download(&u)?, device.download(&score)?);
        check_finite("log potentials of sets", &u, REMEDY)?;
        check_finite("gradients of sets", &score, REMEDY)?;
        let clip = self.clip();
        let slope = score.into_iter().map(|g| g.clamp(-clip, clip)).collect();
        Ok(Walkers { drawn, u, slope })
    }

    /// Sets after so many steps.
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn walk(
        &self,
        drawn: Drawn,
        layout: &Layout,
        num_steps: usize,
        stream: Stream,
    ) -> Result<Drawn> {
        let count = layout.offsets.num_sets() as f64;
        let mut walkers = self.walkers(drawn, layout)?;
        let mut log_step_size = self.config.step_size.ln();
        for number in 0..num_steps {
            let step_size = log_step_size.exp() as f32;
            let stream = stream.child(1000 + number as u64);
            if self.energy.guess().is_some() {
                let drawn = self.guess_anew(walkers.drawn, layout, stream.child(2))?;
                walkers = self.walkers(drawn, layout)?;
            }
            let num_accepted = self.step(&mut walkers, layout, step_size, stream)?;
            if 2 * number < num_steps {
                log_step_size += PACE * (num_accepted as f64 / count - BEST_SHARE);
            }
        }
        Ok(walkers.drawn)
    }

    /// The same sets with new hidden variables, where they are accepted.
    fn guess_anew(&self, mut drawn: Drawn, layout: &Layout, stream: Stream) -> Result<Drawn> {
        let (Some(guess), Some(hidden)) = (self.energy.guess(), &mut drawn.hidden) else {
            return Ok(drawn);
        };
        let count = layout.offsets.num_sets();
        let mut tape = self.reader();
        let elements = tape.upload(drawn.elements.clone(), self.shape(&layout.offsets))?;
        let old = tape.upload(hidden.clone(), (count, hidden.len() / count))?;
        let posterior = guess.posterior(&mut tape, elements, layout)?;
        let new = tape.draw(posterior, stream.child(0))?;
        let mut weigh = |z| {
            let joint = guess.log_joint(&mut tape, (z, elements), layout)?;
            let own = tape.log_density(z, posterior)?;
            let own = tape.row_sums(own)?;
            tape.subtract(joint, own)
        };
        let (of_old, of_new) = (weigh(old)?, weigh(new)?);
        let log_ratios = tape.subtract(of_new, of_old)?;
        let (log_ratios, new) = (tape.download(log_ratios)?, tape.download(new)?);
        check_finite("ratios of hidden variables", &log_ratios, REMEDY)?;
        let mut uniforms = vec![0.0; count];
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        for (set, (log_ratio, uniform)) in log_ratios.into_iter().zip(uniforms).enumerate() {
            if (1.0 - uniform).ln() < log_ratio {
                take_row(hidden, &new, set, count);
            }
        }
        Ok(drawn)
    }

    /// One step of every set; how many moved.
    fn step(
        &self,
        walkers: &mut Walkers,
        layout: &Layout,
        step_size: f32,
        stream: Stream,
    ) -> Result<usize> {
        let Walkers { drawn, u, slope } = walkers;
        let elements = &mut drawn.elements;
        let (mut noise, mut uniforms) = (vec![0.0; elements.len()], vec![0.0; u.len()]);
        stream.child(0).fill_normal(0, 0, &mut noise);
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let moves = slope.iter().zip(&noise);
        let moves = moves.map(|(g, xi)| 0.5 * step_size * g + step_size.sqrt() * xi);
        let moved = elements.iter().zip(moves).map(|(x, by)| x + by).collect();
        let moved = Drawn { elements: moved, hidden: drawn.hidden.clone() };
        let moved = self.walkers(moved, layout)?;
        let (count, width) = (u.len(), elements.len() / u.len());
        let mut num_accepted = 0;
        for set in 0..count {
            // log k(x | y) − log k(y | x) = (‖y − x − η g/2‖² − ‖x − y − η g′/2‖²)/(2 η)
            let terms = (set * width..(set + 1) * width).map(|at| {
                let forward = step_size.sqrt() * noise[at];
                let by = elements[at] - moved.drawn.elements[at];
                let back = by - 0.5 * step_size * moved.slope[at];
                f64::from(forward * forward - back * back)
            });
            let difference: f64 = terms.sum::<f64>() / (2.0 * f64::from(step_size));
            let log_ratio = f64::from(moved.u[set] - u[set]) + difference;
            if f64::from(1.0 - uniforms[set]).ln() < log_ratio {
                num_accepted += 1;
                take_row(elements, &moved.drawn.elements, set, count);
                take_row(slope, &moved.slope, set, count);
                u[set] = moved.u[set];
            }
        }
        Ok(num_accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetOffsets;
    use crate::process::{SetBase, SetEnergyConfig};
    use crate::tape::Device;
    use crate::tensor::Tensor;

    /// Pairs of numbers, by an untrained energy that is a change of its guess or stands alone. Networks start with
    /// outputs so small that the guess would hardly differ from the law, so those of the energy are made larger.
    fn process(base: SetBase) -> SetEnergyProcess {
        let config = SetEnergyConfig {
            element_dim: 1,
            summary_widths: vec![8, 4],
            energy_widths: vec![8],
            input_scale: 2.0,
            base,
            base_std_dev: 0.4,
            generator_width: 8,
            hidden_dim: 2,
            num_couplings: 1,
            num_components: 2,
            step_size: 0.05,
            ..SetEnergyConfig::default()
        };
        let mut process = SetEnergyProcess::new(config, 3, &Device::default()).unwrap();
        let mut state = process.state().unwrap();
        let factor = if base == SetBase::Guess { 1.4 } else { 1.0 };
        for (_, tensor) in state.iter_mut().filter(|(name, _)| name.contains("energy.element")) {
            let values = tensor.as_f32().unwrap().iter().map(|value| factor * value).collect();
            *tensor = Tensor::new(tensor.dims().to_vec(), values).unwrap();
        }
        process.restore(&state).unwrap();
        process
    }

    /// tanh²(x₁ + x₂) and tanh |x₁ − x₂| of pairs.
    fn statistics(pairs: &[f32]) -> [Vec<f64>; 2] {
        let of = |what: fn(f64, f64) -> f64| {
            pairs.chunks_exact(2).map(|x| what(f64::from(x[0]), f64::from(x[1]))).collect()
        };
        [of(|a, b| (a + b).tanh().powi(2)), of(|a, b| (a - b).abs().tanh())]
    }

    /// The estimate of log q is that of a density: with r near q(z), as it starts, each of its terms integrates to
    /// 1 but for the ratio q(z)/r(z | x), which a few z know within a tenth.
    #[test]
    fn the_density_of_a_guess_integrates_to_one() {
        let process = process(SetBase::Guess);
        let (count, half) = (61, 8.0_f32);
        let place = |k: usize| half * (2.0 * k as f32 / (count - 1) as f32 - 1.0);
        let pairs: Vec<f32> =
            (0..count).flat_map(|i| (0..count).flat_map(move |j| [place(i), place(j)])).collect();
        let layout = Layout::new(SetOffsets::uniform(count * count, 2).unwrap());
        let mut tape = process.reader();
        let elements = tape.upload(pairs, (2 * count * count, 1)).unwrap();
        let guess = process.energy.guess().unwrap();
        let logs = guess.log_density(&mut tape, elements, &layout).unwrap();
        let cell = f64::from(place(1) - place(0)).powi(2);
        let mass: f64 =
            tape.download(logs).unwrap().iter().map(|&l| f64::from(l).exp() * cell).sum();
        assert!((mass - 1.0).abs() < 0.1, "{mass}");
    }

    /// Averages over weighed draws and over draws that took steps are those of the energy's law, which many weighed
    /// guesses know: E_p g = E_q[g exp(u − L)] / E_q exp(u − L).
    #[test]
    fn draws_have_the_law_of_the_energy() {
        for base in [SetBase::Guess, SetBase::Gaussian] {
            let process = process(base);
            let count = 20_000;
            let layout = Layout::uniform(count, 2).unwrap();
            let drawn = process.draw_alone((count, 2), Stream::new(1, "guesses")).unwrap();
            let mut tape = process.reader();
            let elements = tape.constant(drawn.elements.clone(), (2 * count, 1)).unwrap();
            let u = process.compared(&mut tape, elements, &layout).unwrap();
            let u = tape.download(u).unwrap();
            let densities = drawn.log_density.host().unwrap();
            let of_draws = |l: &f32| if base == SetBase::Guess { 0.0 } else { *l };
            let terms = u.iter().zip(densities.iter());
            let weights: Vec<f64> = terms.map(|(u, l)| f64::from(u - of_draws(l)).exp()).collect();
            let guessed = statistics(drawn.elements.host().unwrap());
            let total: f64 = weights.iter().sum();
            let mut farthest = 0.0_f64;
            let shares: f64 = weights.iter().map(|w| (w / total).powi(2)).sum();
            for (num_guesses, num_steps, sets) in [(64, 0, 4000), (1, 100, 500)] {
                let refining = Refining { num_guesses, num_steps };
                let sets = process.sample(sets, 2, refining, Stream::new(2, "sets")).unwrap();
                for (found, guessed) in statistics(&sets).iter().zip(&guessed) {
                    let terms = guessed.iter().zip(&weights);
                    let expected = terms.map(|(g, w)| g * w).sum::<f64>() / total;
                    let n = found.len() as f64;
                    let mean = found.iter().sum::<f64>() / n;
                    let variance = found.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
                    let error = (variance * (1.0 / n + shares)).sqrt();
                    // 64 guesses know their own weights' mean within a few per cent.
                    let bias = if num_steps == 0 { 0.03 * expected } else { 0.0 };
                    assert!(
                        (mean - expected).abs() < 4.0 * error + bias,
                        "{base:?} {num_guesses} {num_steps}: {mean} ± {error}, {expected}"
                    );
                    let plain = guessed.iter().sum::<f64>() / count as f64;
                    farthest = farthest.max((plain - expected).abs() / error);
                }
            }
            assert!(farthest > 6.0, "{base:?}: the guess itself would pass");
        }
    }
}
