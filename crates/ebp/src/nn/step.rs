//! A training step's place in its run.

use crate::rng::Stream;

/// Which step to take, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// From 0.
    pub number: u64,
    /// Of how many, for schedules.
    pub num_steps: u64,
    /// All randomness of the step.
    pub stream: Stream,
    /// Multiplies every learning rate; below 1 after a rollback.
    pub learning_rate_factor: f64,
}

/// Named numbers of one step, in the order in which they should be shown.
pub type Record = Vec<(&'static str, f64)>;

impl Step {
    /// The share of all steps that were taken before.
    pub fn progress(&self) -> f64 {
        (self.number as f64 / self.num_steps.max(1) as f64).min(1.0)
    }

    /// Half a cosine from 1 at the first step to 0 after the last.
    pub fn cosine(&self) -> f64 {
        0.5 * (1.0 + (std::f64::consts::PI * self.progress()).cos())
    }

    /// What `start` has fallen to along [`cosine`](Self::cosine), times the factor.
    pub fn learning_rate(&self, start: f64) -> f64 {
        start * self.cosine() * self.learning_rate_factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_from_its_start_to_nothing() {
        let stream = Stream::new(1, "step");
        let at = |number| Step { number, num_steps: 100, stream, learning_rate_factor: 0.5 };
        assert!((at(0).learning_rate(2.0) - 1.0).abs() < 1e-12);
        assert!((at(50).learning_rate(2.0) - 0.5).abs() < 1e-12);
        assert!(at(100).learning_rate(2.0).abs() < 1e-12);
        assert!(at(900).learning_rate(2.0).abs() < 1e-12);
    }
}
