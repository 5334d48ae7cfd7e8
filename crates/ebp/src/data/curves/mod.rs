//! Families of one-dimensional sets whose density is known.
//!
//! A set has elements (t, x) with t ~ U(−2, 2). Each element takes one of the family's branches
//! by a fair coin and adds noise of standard deviation σ = 0.1:
//!
//! ```text
//! p(x | t, latent) = mean over branches b of N(x; m_b(t), σ²)
//! ```
//!
//! | family | branches m_b(t) | latent of a set |
//! |---|---|---|
//! | `sines` | sin 2t, cos 2t | none |
//! | `lines` | 0.5, −0.5 | none |
//! | `circle` | √(4 − t²), −√(4 − t²) | none |
//! | `sine` | sin 2t | none |
//! | `gp` | g(t), a draw of a Gaussian process | g |
//! | `phase` | sin(2t + φ), cos(2t + φ) | φ ~ U(0, 2π) |
//!
//! `sines`, `lines` and `circle` are those of the paper. Their sets all have the same law, so they
//! test neither the use of a context nor the collapse of a posterior; `gp` and `phase` do.

mod bayes;
mod cholesky;
mod gaussian_process;
mod information;
mod law;

use crate::rng::Stream;
use crate::{Error, IndexedSet, Result};

pub use bayes::BayesPredictive;
pub use law::CurveLaw;

/// σ: standard deviation of the noise on every branch.
pub const NOISE_STD_DEV: f64 = 0.1;

/// A family of sets.
///
/// ```
/// use ebp::data::CurveFamily;
/// use ebp::rng::Stream;
///
/// let family = CurveFamily::parse("phase")?;
/// let sample = family.draw(Stream::new(7, "curves"), 0, 30)?;
/// assert_eq!(sample.set.len(), 30);
/// // Two peaks, each with half of the mass.
/// let peak = sample.law.modes(0.5)[0];
/// assert!(sample.law.log_density(0.5, peak) > 0.6);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CurveFamily {
    /// sin 2t or cos 2t.
    Sines,
    /// 0.5 or −0.5.
    Lines,
    /// √(4 − t²) or −√(4 − t²).
    Circle,
    /// sin 2t alone.
    Sine,
    /// A draw of a Gaussian process with kernel exp(−(t − t′)²/(2 · 0.5²)), one per set.
    Gp,
    /// sin(2t + φ) or cos(2t + φ), with one φ ~ U(0, 2π) per set.
    Phase,
}

/// A set together with the law it was drawn from.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveSet {
    /// The elements, d_t = d_x = 1.
    pub set: IndexedSet,
    /// Their law, given the latent of this set.
    pub law: CurveLaw,
}

impl CurveFamily {
    /// All families, in the order of the documentation.
    pub const ALL: [Self; 6] =
        [Self::Sines, Self::Lines, Self::Circle, Self::Sine, Self::Gp, Self::Phase];

    /// The name under which results are reported.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sines => "sines",
            Self::Lines => "lines",
            Self::Circle => "circle",
            Self::Sine => "sine",
            Self::Gp => "gp",
            Self::Phase => "phase",
        }
    }

    /// The family called `name`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] that lists the names if there is no such family.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.map(Self::name).into();
            Error::invalid("family", format!("one of {}", names.join(", ")), format!("`{name}`"))
        })
    }

    /// Where locations lie.
    pub fn location_range(self) -> (f64, f64) {
        (-2.0, 2.0)
    }

    /// Where values lie, with a margin of at least nine σ around every branch. A draw of `gp`
    /// leaves this range once in 10⁵ locations.
    pub fn value_range(self) -> (f64, f64) {
        match self {
            Self::Sines | Self::Sine | Self::Phase => (-1.9, 1.9),
            Self::Lines => (-1.4, 1.4),
            Self::Circle => (-3.3, 3.3),
            Self::Gp => (-4.5, 4.5),
        }
    }

    /// Whether sets differ in their law, so that a context tells something.
    pub fn has_latent(self) -> bool {
        matches!(self, Self::Gp | Self::Phase)
    }

    /// Set number `set_number` of `stream`, with `num_elements` elements: a pure function. Asking
    /// for more elements gives the same first ones.
    ///
    /// # Errors
    ///
    /// None in practice: all numbers are finite.
    pub fn draw(self, stream: Stream, set_number: u64, num_elements: usize) -> Result<CurveSet> {
        let stream = stream.child(set_number);
        let law = CurveLaw::draw(self, stream.child(0));
        let mut uniforms = vec![0.0; num_elements];
        let (low, high) = self.location_range();
        stream.child(1).fill_uniform(0, 0, &mut uniforms);
        let locations: Vec<f64> =
            uniforms.iter().map(|&u| low + (high - low) * f64::from(u)).collect();
        stream.child(2).fill_uniform(0, 0, &mut uniforms);
        let mut noise = vec![0.0; num_elements];
        stream.child(3).fill_normal(0, 0, &mut noise);
        let values = locations
            .iter()
            .zip(uniforms.iter().zip(&noise))
            .map(|(&t, (&coin, &xi))| {
                // x = m_b(t) + σ ξ
                law.branches(t).choose(f64::from(coin)) + NOISE_STD_DEV * f64::from(xi)
            })
            .collect();
        Ok(CurveSet { set: IndexedSet::new(1, 1, locations, values)?, law })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused_with_the_list() {
        for family in CurveFamily::ALL {
            assert_eq!(CurveFamily::parse(family.name()).unwrap(), family);
        }
        assert_eq!(
            CurveFamily::parse("spiral").unwrap_err().to_string(),
            "`family` must be one of sines, lines, circle, sine, gp, phase, found `spiral`"
        );
    }

    #[test]
    fn a_set_is_a_function_of_its_number_and_longer_sets_begin_alike() {
        let stream = Stream::new(1, "curves");
        for family in CurveFamily::ALL {
            let short = family.draw(stream, 3, 10).unwrap();
            let long = family.draw(stream, 3, 50).unwrap();
            assert_eq!(short.law, long.law);
            assert_eq!(short.set, long.set.select(&(0..10).collect::<Vec<_>>()));
            assert_ne!(short.set, family.draw(stream, 4, 10).unwrap().set);
        }
    }
}
