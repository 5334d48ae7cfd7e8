//! A sequence of random numbers in f64 along the counter of a [`Stream`], for chains whose length is not
//! known beforehand.
//!
//! Two uniforms of 24 bits make one of 48 in (0, 1). A chain that owns its stream draws the same numbers
//! whoever else is working.

use std::f64::consts::TAU;

use crate::rng::Stream;

/// Words that are drawn at once.
const BLOCK: usize = 256;

/// The next numbers of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    stream: Stream,
    next: u64,
    words: [f32; BLOCK],
    used: usize,
}

impl Draws {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, next: 0, words: [0.0; BLOCK], used: BLOCK }
    }

    fn word(&mut self) -> f32 {
        if self.used == BLOCK {
            self.stream.fill_uniform(0, self.next, &mut self.words);
            self.next += BLOCK as u64;
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// Uniform on (0, 1): odd multiples of 2⁻⁴⁹.
    pub(crate) fn uniform(&mut self) -> f64 {
        let (high, low) = (self.word(), self.word());
        f64::from(high) + f64::from(low) * 2_f64.powi(-24) + 2_f64.powi(-49)
    }

    /// One of 0, …, `count` − 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }

    /// Poisson: how many exponential waiting times fit into `mean`.
    pub(crate) fn poisson(&mut self, mean: f64) -> usize {
        let (mut count, mut time) = (0, self.exponential());
        while time < mean {
            count += 1;
            time += self.exponential();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of n draws; four standard errors.
    #[test]
    fn draws_have_their_moments() {
        let mut draws = Draws::new(Stream::new(1, "draws"));
        let n = 20_000;
        let mut check = |draw: &mut dyn FnMut(&mut Draws) -> f64, mean: f64, variance: f64| {
            let values: Vec<f64> = (0..n).map(|_| draw(&mut draws)).collect();
            let found = values.iter().sum::<f64>() / f64::from(n);
            assert!(
                (found - mean).abs() < 4.0 * (variance / f64::from(n)).sqrt(),
                "{found} {mean}"
            );
        };
        check(&mut Draws::uniform, 0.5, 1.0 / 12.0);
        check(&mut Draws::exponential, 1.0, 1.0);
        check(&mut Draws::normal, 0.0, 1.0);
        check(&mut |draws| draws.normal().powi(2), 1.0, 2.0);
        check(&mut |draws| draws.poisson(3.5) as f64, 3.5, 3.5);
        check(&mut |draws| draws.below(7) as f64, 3.0, 4.0);
    }
}
