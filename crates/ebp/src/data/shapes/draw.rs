//! The parameters of a shape, drawn one after the other.

use crate::rng::Stream;

/// A die that gives the same shape for the same seed and number.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    stream: Stream,
    next: u64,
}

impl Draw {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, next: 0 }
    }

    /// Uniform on [0, 1).
    fn unit(&mut self) -> f64 {
        let mut value = [0.0];
        self.stream.fill_uniform(0, self.next, &mut value);
        self.next += 1;
        f64::from(value[0])
    }

    /// Uniform between two numbers.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A whole number from `low` to `high`, both included.
    pub(super) fn whole(&mut self, low: usize, high: usize) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let offset = (self.unit() * (high - low + 1) as f64) as usize;
        (low + offset).min(high)
    }

    /// Whether something happens that has this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of several, by their weights.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[(f64, T)], otherwise: T) -> T {
        let total: f64 = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.unit() * total;
        for &(weight, choice) in choices {
            left -= weight;
            if left < 0.0 {
                return choice;
            }
        }
        otherwise
    }
}
