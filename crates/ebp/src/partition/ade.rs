//! Adversarial dynamics embedding, the paper's estimator, in nats per element.
//!
//! log Z has a dual form, −log Z = min_q E_q[ L − u ], so a learned sampler q stands in for it
//! (`learned`). The energy rises at the data and falls at the draws:
//!
//! ```text
//! plain      max over f, q(θ):  E[ u(x, t; θ) ] − E_q[ u(x̃, t; θ) ] − κ KL / n
//! weighted   the same with draws weighed by w ∝ exp(u − L):  the gradient of log E_q exp(u − L)
//! ```
//!
//! Plain, the gradient is that of log Z only where q has the energy's law; a wide energy at a high
//! rate runs away from the sampler. Weighted, the sampler proposes and the energy decides, and log Z is
//! importance sampling with the learned sampler as its only proposal. Draws are constants in the
//! energy's step, as in the paper's released code. Recorded are
//!
//! ```text
//! effective_share  (Σw)²/(K Σw²)                of the draws
//! gap              E f(data) − E_q f(draws)     what a plain game raises
//! slack            E_q[L − u] + log Ẑ           what the dual form leaves
//! sampler_loss     E_q[L − u]                   what the sampler lowers, at most −log Z below
//! ```

use super::importance::{Found, Importance};
use super::learned::{Game, LearnedSampler};
use super::{Estimate, Partition, Round};
use crate::Result;
use crate::energy::{base_measure, element_rows};
use crate::recipe::{EnergyBasedConfig, NegativePhase};
use crate::sampler::{Draws, mean_of_means};
use crate::tape::{Tape, Var};

/// Steps in which the energy never waits: the sampler's first draws say nothing yet.
const FIRST_STEPS: u64 = 50;

#[derive(Debug)]
pub(super) struct Ade {
    importance: Importance,
    sampler: LearnedSampler,
    negative_phase: NegativePhase,
    wait_below: f64,
    has_densities: bool,
    base_std_dev: Option<f32>,
}

impl Ade {
    pub(super) fn new(
        config: &EnergyBasedConfig,
        importance: Importance,
        sampler: LearnedSampler,
    ) -> Self {
        Self {
            importance,
            sampler,
            negative_phase: config.sampler.negative_phase,
            wait_below: config.sampler.wait_below,
            has_densities: config.sampler.has_densities(),
            base_std_dev: config.base(),
        }
    }

    /// The mean of u over the draws less that at the data, and what the same draws say of log Z.
    fn plain(
        &self,
        tape: &mut Tape,
        round: &Round<'_>,
        parameters: Var,
        draws: &Draws,
    ) -> Result<(Var, Found)> {
        let (energy, targets) = (round.element_energy()?, &round.targets);
        let rows = element_rows(tape, draws.values, draws.features)?;
        let fake = energy.points(parameters, rows, round.theta, &draws.offsets);
        let fake = tape.point_values(&fake)?;
        let real = tape.point_values(&targets.points(energy, parameters, round.theta))?;
        let real = mean_of_means(tape, real, &targets.offsets)?;
        // The base measure is no function of the parameters: it has no part in the gradient.
        let mean = draws.expectation(tape, fake)?;
        let loss = tape.subtract(mean, real)?;
        let anchors = tape.shape(fake).0 / draws.count;
        let values = tape.reshape(fake, (anchors, draws.count))?;
        let values = tape.detach(values);
        let log_weights = self.importance.log_weights(tape, draws)?;
        let logs = tape.add(values, log_weights)?;
        let log_partition = tape.log_sum_exp(logs)?;
        let places = targets.places()?;
        let mean = mean_of_means(tape, log_partition, &places.offsets)?;
        let nats = tape.subtract(mean, real)?;
        let nats = tape.affine(nats, 1.0, -targets.base)?;
        let nats = tape.detach(nats);
        Ok((loss, Found { nats, values, log_partition, log_weights }))
    }

    /// The effective share of draws, E f(data) − E_q f(draws), and E_q[L − u] + log Ẑ.
    fn figures(
        &self,
        tape: &mut Tape,
        round: &Round<'_>,
        draws: &Draws,
        found: &Found,
    ) -> Result<[Var; 3]> {
        let figures = tape.weight_figures(found.values, Some(found.log_weights), None)?;
        let effective = tape.columns(figures, 0, 1)?;
        let share = tape.affine(effective, 1.0 / draws.count as f64, 0.0)?;
        let rows = tape.shape(draws.values).0;
        let f = tape.reshape(found.values, (rows, 1))?;
        let offsets = round.targets.places()?.offsets;
        let log_partition = mean_of_means(tape, found.log_partition, &offsets)?;
        // nats = log Ẑ − E f(data) − the base measure there
        let real = tape.subtract(log_partition, found.nats)?;
        let real = tape.affine(real, 1.0, -round.targets.base)?;
        let fake = draws.expectation(tape, f)?;
        let gap = tape.subtract(real, fake)?;
        let mut lost = tape.subtract(draws.log_density, f)?;
        if let Some(std_dev) = self.base_std_dev {
            let base = base_measure(tape, draws.values, std_dev)?;
            lost = tape.subtract(lost, base)?;
        }
        let lost = draws.expectation(tape, lost)?;
        Ok([share, gap, tape.add(lost, log_partition)?])
    }
}

impl Partition for Ade {
    fn loss(&mut self, tape: &mut Tape, round: &Round<'_>) -> Result<Estimate> {
        let energy = round.element_energy()?;
        let game = Game::new(tape, round)?;
        let sampler_loss = self.sampler.train(&game, round.step)?;
        let stream = round.step.stream.child(2);
        let draws = self.sampler.draw(tape, &game, round.targets.features, stream)?;
        let parameters = energy.calibrated(tape, true)?;
        let (loss, found) = match self.negative_phase {
            NegativePhase::Plain => self.plain(tape, round, parameters, &draws)?,
            NegativePhase::Weighted => {
                let vars = (round.theta, parameters);
                let (energy, targets) = (energy, &round.targets);
                let found = self.importance.likelihood(
                    tape,
                    energy,
                    targets,
                    vars,
                    (None, Some(&draws)),
                )?;
                (found.nats, found)
            }
        };
        let [share, gap, slack] = self.figures(tape, round, &draws, &found)?;
        let mut figures: Vec<(&'static [&'static str], Var)> = vec![(&["gap"], gap)];
        let mut waits = false;
        if self.has_densities {
            figures.extend([(&["effective_share"][..], share), (&["slack"], slack)]);
            if self.wait_below > 0.0 && round.step.number >= FIRST_STEPS {
                let share = f64::from(tape.download(share)?[0]);
                // All shards wait, or none.
                waits = self.sampler.parameters.common(share)? < self.wait_below;
            }
        }
        figures.push((&["sampler_loss"], tape.constant(sampler_loss, (1, 1))?));
        Ok(Estimate { loss, nats: found.nats, figures, draws: Some(draws), waits })
    }

    fn sampler(&self) -> Option<&LearnedSampler> {
        Some(&self.sampler)
    }

    fn sampler_mut(&mut self) -> Option<&mut LearnedSampler> {
        Some(&mut self.sampler)
    }
}
