//! How log Z is estimated, and where its candidates come from.

use serde::{Deserialize, Serialize};

use super::Space;
use crate::{Error, Result};

/// How the gradient of log Z is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Sums over a finite alphabet, to which values are quantised.
    Exact,
    /// Importance sampling.
    Importance,
    /// Adversarial dynamics embedding, the paper's: a learned sampler.
    Ade,
    /// Denoising score matching, which needs no log Z.
    ScoreMatching,
}

impl Estimator {
    /// Its name in settings and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Importance => "importance",
            Self::Ade => "ade",
            Self::ScoreMatching => "score-matching",
        }
    }
}

/// Where candidates for log Z come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalKind {
    /// One in each cell of the domain, for every target.
    Cells,
    /// Half of them so, half from Gaussians around the target's own value.
    Around,
    /// Cells around a set's own points, at several scales: sets without locations.
    OwnPoints,
}

/// Where candidates for log Z come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProposalConfig {
    /// The rule.
    pub kind: ProposalKind,
    /// Widths of the cells around a set's own points.
    pub cell_widths: Vec<f32>,
    /// The share of candidates around a set's own points that is uniform on the domain instead.
    pub uniform_share: f64,
    /// The share of candidates that the learned sampler draws.
    pub sampler_share: f64,
}

impl Default for ProposalConfig {
    fn default() -> Self {
        Self {
            kind: ProposalKind::Cells,
            cell_widths: vec![0.05, 0.1, 0.2, 0.4, 0.8],
            uniform_share: 0.15,
            sampler_share: 0.0,
        }
    }
}

impl ProposalConfig {
    /// For sets of points.
    pub fn points() -> Self {
        Self { kind: ProposalKind::OwnPoints, ..Self::default() }
    }

    /// For values between which no cell may be missed, such as those of pictures.
    pub fn around() -> Self {
        Self { kind: ProposalKind::Around, ..Self::default() }
    }

    pub(crate) fn uses_sampler(&self, estimator: Estimator) -> bool {
        estimator == Estimator::Importance && self.sampler_share > 0.0
    }

    /// Candidates of `count` that the learned sampler draws.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    pub(crate) fn num_sampled(&self, count: usize, estimator: Estimator) -> usize {
        if !self.uses_sampler(estimator) {
            return 0;
        }
        (self.sampler_share * count as f64).round() as usize
    }

    pub(crate) fn check(&self, count: usize, space: &Space, estimator: Estimator) -> Result<()> {
        for (field, found) in [
            ("proposal.uniform_share", self.uniform_share),
            ("proposal.sampler_share", self.sampler_share),
        ] {
            if !(0.0..=1.0).contains(&found) {
                return Err(Error::invalid(field, "in [0, 1]", found));
            }
        }
        if estimator == Estimator::Exact {
            return Ok(());
        }
        match (self.kind, space.location_dim) {
            (ProposalKind::OwnPoints, 0) => self.check_own_points(count),
            (ProposalKind::OwnPoints, _) => Err(Error::invalid(
                "proposal.kind",
                "`cells` or `around` where elements have locations, each with a law of its own",
                "own-points",
            )),
            (_, 0) => Err(Error::invalid(
                "proposal.kind",
                "`own-points` for sets without locations, whose points share one law",
                "another kind",
            )),
            _ => {
                // The grid of candidates has at least two cells per coordinate.
                let dims = u32::try_from(space.value_dim).unwrap_or(u32::MAX);
                let left = count - self.num_sampled(count, estimator);
                if 2_usize.checked_pow(dims).is_none_or(|fewest| left > 0 && left < fewest) {
                    let expected = format!("at least 2^{dims} (two cells per coordinate)");
                    return Err(Error::invalid("num_proposals", expected, left));
                }
                Ok(())
            }
        }
    }

    fn check_own_points(&self, count: usize) -> Result<()> {
        if self.cell_widths.is_empty() {
            return Err(Error::invalid("proposal.cell_widths", "at least one", "none"));
        }
        if let Some(width) = self.cell_widths.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
            return Err(Error::invalid("proposal.cell_widths", "positive and finite", width));
        }
        // log Z must see all of the domain and every data point (a spike between proposals is
        // otherwise free).
        let least = 1.0 / count as f64;
        let (uniform, sampler) = (self.uniform_share, self.sampler_share);
        if uniform < least || uniform + sampler > 1.0 - least {
            let expected = "shares that leave at least one proposal for the domain and one for \
                            the set's own points";
            let found = format!("{uniform} and {sampler}");
            return Err(Error::invalid("proposal.uniform_share, sampler_share", expected, found));
        }
        Ok(())
    }
}
