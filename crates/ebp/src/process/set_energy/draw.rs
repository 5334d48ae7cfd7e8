//! Draws of the sampler: the first guess, moved by Langevin steps along the joint gradient, with their L.
//!
//! ```text
//! x′ = x + (η/2) clip(∇u(x)) + s ξ
//! random walk back   L ← L + (‖x′ − x‖² − ‖s ξ‖²)/(2 s²)
//! Langevin back      L ← L + (‖x − x′ − (η/2) clip(∇u(x′))‖² − ‖s ξ‖²)/(2 s²)
//! ```
//!
//! less log r(z | x) where the first guess has a hidden variable: E exp(u − L) = Zₙ. η and, with a Langevin
//! step as the way back, s are learned. Gradients flow through ∇u (`tape/field.rs`).

use std::sync::Arc;

use super::energy::Layout;
use super::generator::DrawnSets;
use super::{Generator, SetEnergyProcess};
use crate::Result;
use crate::rng::Stream;
use crate::tape::{Array, Tape, Var};

/// Draws from which nothing is learned.
pub(super) struct DrawnArrays {
    pub(super) elements: Array,
    /// L, `[sets]`.
    pub(super) log_density: Array,
    /// z, `[sets, h]`, where there is one.
    pub(super) hidden: Option<Array>,
}

impl SetEnergyProcess {
    /// Sets of `size` elements; gradients flow to the sampler.
    pub(super) fn draw(
        &self,
        tape: &mut Tape,
        layout: &Layout,
        size: usize,
        stream: Stream,
    ) -> Result<DrawnSets> {
        let num_sets = layout.offsets.num_sets();
        let mut drawn = self.generator.draw(tape, num_sets, size, stream.child(0))?;
        if self.config.num_dynamics_steps > 0 {
            self.langevin(tape, layout, &mut drawn, stream)?;
        }
        if let (Generator::Hierarchical(hierarchy), Some(hidden)) = (&self.generator, drawn.hidden)
        {
            let guessed = hierarchy.log_posterior(tape, hidden, drawn.elements, layout)?;
            drawn.log_density = tape.subtract(drawn.log_density, guessed)?;
        }
        Ok(drawn)
    }

    fn langevin(
        &self,
        tape: &mut Tape,
        layout: &Layout,
        drawn: &mut DrawnSets,
        stream: Stream,
    ) -> Result<()> {
        let shape = tape.shape(drawn.elements);
        let halves = tape.parameter(&self.log_step_sizes)?;
        let halves = tape.affine(halves, 1.0, 0.5_f64.ln())?;
        let halves = tape.exp(halves)?;
        let log_noises = if let Some(log_noises) = &self.log_noises {
            tape.parameter(log_noises)?
        } else {
            let steps = self.config.num_dynamics_steps;
            #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
            let noise = (0.5 * self.config.step_size.ln()) as f32;
            tape.upload(vec![noise; steps], (1, steps))?
        };
        let noises = tape.exp(log_noises)?;
        let precisions = tape.affine(log_noises, -2.0, 0.0)?;
        let precisions = tape.exp(precisions)?;
        let mut slope = self.slope(tape, drawn.elements, layout)?;
        for number in 0..self.config.num_dynamics_steps {
            let half = tape.columns(halves, number, 1)?;
            let noise = tape.columns(noises, number, 1)?;
            let precision = tape.columns(precisions, number, 1)?;
            let xi = tape.normals(shape, stream.child(1 + number as u64))?;
            let drift = tape.multiply(slope, half)?;
            let kick = tape.multiply(xi, noise)?;
            let moved = tape.add(drift, kick)?;
            drawn.elements = tape.add(drawn.elements, moved)?;
            let is_last = number + 1 == self.config.num_dynamics_steps;
            let mut back = moved;
            if self.log_noises.is_some() || !is_last {
                slope = self.slope(tape, drawn.elements, layout)?;
            }
            if self.log_noises.is_some() {
                // x − x′ − (η/2) g(x′), turned around
                let drift = tape.multiply(slope, half)?;
                back = tape.add(moved, drift)?;
            }
            let squares = [tape.square(back)?, tape.square(xi)?];
            let back = tape.multiply(squares[0], precision)?;
            let gained = tape.subtract(back, squares[1])?;
            let gained = tape.row_sums(gained)?;
            let gained = tape.set_sums(gained, &layout.offsets)?;
            let gained = tape.affine(gained, 0.5, 0.0)?;
            drawn.log_density = tape.add(drawn.log_density, gained)?;
        }
        Ok(())
    }

    /// clip(∇u), through which gradients flow to the elements.
    fn slope(&self, tape: &mut Tape, elements: Var, layout: &Layout) -> Result<Var> {
        let (energy, own) = (Arc::clone(&self.energy), layout.clone());
        let field = move |tape, elements| {
            energy.score(tape, (elements, None), &own).map(|[_, score]| score)
        };
        let slope = tape.gradient_field(elements, &layout.offsets, field)?;
        let clip = self.clip();
        tape.clamp(slope, -clip, clip)
    }

    /// `count` draws of `size` elements, from which nothing is learned.
    pub(super) fn draw_alone(
        &self,
        (count, size): (usize, usize),
        stream: Stream,
    ) -> Result<DrawnArrays> {
        let layout = Layout::uniform(count, size)?;
        let mut tape = self.reader();
        let drawn = self.draw(&mut tape, &layout, size, stream)?;
        let array = |var| tape.array(var).clone();
        Ok(DrawnArrays {
            elements: array(drawn.elements),
            log_density: array(drawn.log_density),
            hidden: drawn.hidden.map(array),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetOffsets;
    use crate::process::{GeneratorKind, SetEnergyConfig};
    use crate::recipe::ReverseKernel;
    use crate::tape::Device;
    use crate::tensor::Tensor;

    fn process(config: &SetEnergyConfig) -> SetEnergyProcess {
        let config = SetEnergyConfig {
            element_dim: 1,
            summary_widths: vec![8, 4],
            energy_widths: vec![8],
            generator_width: 8,
            hidden_dim: 1,
            energy_components: 2,
            num_components: 2,
            // Narrower than the guesses, so that weights have a variance.
            base_std_dev: 0.4,
            ..config.clone()
        };
        SetEnergyProcess::new(config, 3, &Device::default()).unwrap()
    }

    /// Z₂ of pairs of numbers by the trapezoid rule on a grid.
    fn partition(process: &SetEnergyProcess) -> f64 {
        let (count, half) = (121, 6.0_f32);
        let place = |k: usize| half * (2.0 * k as f32 / (count - 1) as f32 - 1.0);
        let pairs: Vec<f32> =
            (0..count).flat_map(|i| (0..count).flat_map(move |j| [place(i), place(j)])).collect();
        let offsets = SetOffsets::uniform(count * count, 2).unwrap();
        let u = process.log_potentials(&pairs, &offsets).unwrap();
        let cell = f64::from(place(1) - place(0)).powi(2);
        u.iter().map(|&u| f64::from(u).exp() * cell).sum()
    }

    /// E exp(u − L) = Zₙ, whatever guesses first and however the way back is measured.
    #[test]
    fn draws_weigh_what_they_should() {
        for (generator, reverse_kernel) in [
            (GeneratorKind::Mixture, ReverseKernel::Langevin),
            (GeneratorKind::Mixture, ReverseKernel::RandomWalk),
            (GeneratorKind::Hierarchical, ReverseKernel::Langevin),
        ] {
            let process = process(&SetEnergyConfig {
                generator,
                reverse_kernel,
                num_dynamics_steps: 2,
                step_size: 0.05,
                ..SetEnergyConfig::default().as_published()
            });
            let count = 20_000;
            let drawn = process.draw_alone((count, 2), Stream::new(1, "draws")).unwrap();
            let offsets = SetOffsets::uniform(count, 2).unwrap();
            let elements = drawn.elements.host().unwrap();
            let u = process.log_potentials(elements, &offsets).unwrap();
            let densities = drawn.log_density.host().unwrap();
            let terms = u.iter().zip(densities.iter()).map(|(u, l)| f64::from(u - l).exp());
            let weights: Vec<f64> = terms.collect();
            let mean = weights.iter().sum::<f64>() / count as f64;
            let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / count as f64;
            let error = (variance / count as f64).sqrt();
            let expected = partition(&process);
            assert!((mean - expected).abs() < 4.0 * error, "{mean} ± {error}, {expected}");
            assert!(error < 0.1 * expected, "{error} of {expected} says nothing");
        }
    }

    /// The gradient of E[L − u] with respect to the first step size passes through ∇u at the next place.
    #[test]
    fn gradients_through_steps_have_their_hessian_terms() {
        let mut process = process(&SetEnergyConfig {
            num_draws: 256,
            num_dynamics_steps: 3,
            step_size: 0.2,
            ..SetEnergyConfig::default().as_published()
        });
        let stream = Stream::new(2, "draws");
        let loss = |process: &SetEnergyProcess| {
            let mut tape = process.parameters.device().tape();
            tape.train(&process.sampler_parameters);
            tape.read(&process.parameters);
            let (loss, _) = process.reverse_divergence(&mut tape, 4, stream).unwrap();
            (tape, loss)
        };
        let (tape, value) = loss(&process);
        let device = process.parameters.device().clone();
        let gradients = tape.backward(value).unwrap();
        let found = gradients.of(&process.log_step_sizes, &device).unwrap().unwrap()[0];
        let state = process.state().unwrap();
        let name = state
            .keys()
            .find(|name| name.starts_with("parameters/") && name.ends_with("log_step_sizes"))
            .unwrap()
            .clone();
        let start = process.sampler_parameters.values(&process.log_step_sizes).unwrap();
        let h = 0.02_f32;
        let mut moved = |sign: f32| {
            let mut state = state.clone();
            let mut sizes = start.clone();
            sizes[0] += sign * h;
            state.insert(name.clone(), Tensor::new(state[&name].dims().to_vec(), sizes).unwrap());
            process.restore(&state).unwrap();
            let (tape, value) = loss(&process);
            f64::from(tape.download(value).unwrap()[0])
        };
        let expected = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(h));
        // Rounding: 1e-7 of a loss near 1 over 2 h, 5e-6; the third derivative times h²/6 is 7e-5 of it.
        let error = (f64::from(found) - expected).abs();
        assert!(error < 5e-3 * expected.abs() + 1e-5, "{found} {expected}");
    }
}
