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
        let log_noises = match &self.log_noises {
            Some(log_noises) => tape.parameter(log_noises)?,
            None => {
                let steps = self.config.num_dynamics_steps;
                #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
                let noise = (0.5 * self.config.step_size.ln()) as f32;
                tape.upload(vec![noise; steps], (1, steps))?
            }
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
        let field = move |tape, elements| energy.score_on(tape, elements, &own);
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
        let mut tape = self.parameters.device().tape();
        tape.read(&self.sampler_parameters);
        tape.read(&self.parameters);
        let drawn = self.draw(&mut tape, &layout, size, stream)?;
        let array = |var| tape.array(var).clone();
        Ok(DrawnArrays {
            elements: array(drawn.elements),
            log_density: array(drawn.log_density),
        })
    }
}
