//! Draws of the sampler beside candidates around the targets' own values, all weighed by one density:
//!
//! ```text
//! r(y) = (1 − a) q(y | t, θ) + a mean_s N(y; x, σ_s² I),     q with its uniform part
//! ```
//!
//! Every y is drawn from r as a whole, so exp(u − log r) weighs it whichever part it came from: a spike of f
//! at the data is met by the Gaussians around x, and a draw of q that happens to hit it does not count for
//! more than they do. x is a constant of the estimate, and log Z is estimated without bias whatever it is.

use std::sync::Arc;

use super::Targets;
use crate::rng::Stream;
use crate::sampler::{Draws, Places, Purpose, Sampler};
use crate::tape::{MixtureLaw, Tape, Var};
use crate::{Error, Result, SetOffsets};

/// σ_s as shares of the domain's width: from half a grey level to a tenth of all.
const WIDTHS: [f32; 4] = [0.002, 0.01, 0.03, 0.1];

/// What is put around targets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    /// a.
    pub(super) share: f64,
    /// Values lie between these.
    pub(super) domain: (f32, f32),
}

impl Near {
    /// Candidates beside `draws`, about a/(1 − a) times as many.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share")]
    fn each(self, draws: usize) -> usize {
        let wanted = draws as f64 * self.share / (1.0 - self.share);
        ((wanted / WIDTHS.len() as f64).round() as usize).max(1)
    }

    /// The Gaussians around every target as mixtures, `[n, numbers]`.
    fn kernels(self, tape: &mut Tape, values: Var, law: MixtureLaw) -> Result<Var> {
        let (n, dims) = tape.shape(values);
        let below = dims * (dims - 1) / 2;
        let logit = tape.upload(vec![0.0; n], (n, 1))?;
        let below =
            if below > 0 { Some(tape.upload(vec![0.0; n * below], (n, below))?) } else { None };
        let mut parts = Vec::new();
        for width in &WIDTHS[..law.components] {
            let log_std_dev = (width * (self.domain.1 - self.domain.0)).ln();
            let scale = tape.upload(vec![log_std_dev; n * dims], (n, dims))?;
            parts.extend([logit, values, scale]);
            parts.extend(below);
        }
        tape.concat(&parts)
    }

    /// The draws with the candidates behind them, anchor by anchor, as constants.
    pub(super) fn beside(
        self,
        tape: &mut Tape,
        (sampler, theta): (&Sampler, Var),
        targets: &Targets,
        draws: &Draws,
        stream: Stream,
    ) -> Result<Draws> {
        let places: Places = targets.places()?;
        let (n, dims) = tape.shape(targets.values);
        let law = MixtureLaw { components: WIDTHS.len(), dims };
        let each = self.each(draws.count);
        let num_near = each * WIDTHS.len();
        let (count, total) = (draws.count, draws.count + num_near);
        let kernels = self.kernels(tape, targets.values, law)?;
        let noise = tape.normals((n * num_near, dims), stream)?;
        let near = tape.mixture_draws(kernels, law, noise)?;
        let at = (near.values, Purpose::Training);
        let density = sampler.log_density(tape, theta, &places, at)?;
        let Some(density) = density else {
            return Err(Error::invalid("sampler.kind", "a mixture for `around_share`", "another"));
        };
        let mut behind = |first: Var, second: Var, width: usize| -> Result<Var> {
            let first = tape.reshape(first, (n, count * width))?;
            let second = tape.reshape(second, (n, num_near * width))?;
            let both = tape.concat(&[first, second])?;
            tape.reshape(both, (n * total, width))
        };
        let values = behind(draws.values, near.values, dims)?;
        let of_sampler = behind(draws.log_density, density, 1)?;
        let shares = match draws.log_shares {
            Some(shares) => shares,
            None => tape.upload(vec![-(count as f32).ln(); n * count], (n * count, 1))?,
        };
        let own = tape.affine(shares, 1.0, (1.0 - self.share).ln())?;
        let others = tape.affine(near.log_shares, 1.0, self.share.ln())?;
        let own = tape.reshape(own, (n, count))?;
        let others = tape.reshape(others, (n, num_near))?;
        let log_shares = tape.concat(&[own, others])?;
        let log_shares = tape.reshape(log_shares, (n * total, 1))?;
        let of_kernels = tape.mixture_log_density(kernels, law, None, values)?;
        let of_kernels = tape.affine(of_kernels, 1.0, self.share.ln())?;
        let of_sampler = tape.affine(of_sampler, 1.0, (1.0 - self.share).ln())?;
        let both = tape.concat(&[of_sampler, of_kernels])?;
        let log_density = tape.log_sum_exp(both)?;
        let sizes = (0..places.offsets.num_sets()).map(|set| places.offsets.size(set) * total);
        Ok(Draws {
            values,
            log_density,
            log_shares: Some(log_shares),
            count: total,
            features: None,
            offsets: Arc::new(SetOffsets::from_sizes(sizes)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::energy::ElementEnergy;
    use crate::recipe::{EnergyBasedConfig, SamplerConfig, Space};
    use crate::sampler::Followed;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    /// Weighed by shares/r, candidates integrate a constant over the domain, and a spike at the target that
    /// no draw of the sampler would meet.
    #[test]
    fn all_candidates_have_one_density() {
        let (anchors, x, std_dev) = (4000, 0.3_f32, 0.004);
        let config = EnergyBasedConfig {
            latent_dim: 1,
            sampler: SamplerConfig { num_components: 4, num_draws: 8, ..SamplerConfig::default() },
            ..EnergyBasedConfig::default()
        };
        let space = Space::regression(1, 1, (-1.0, 1.0));
        let mut builder = ParameterBuilder::new(1);
        let energy = ElementEnergy::new(&config, (1, 1), &mut builder.group("energy")).unwrap();
        let sampler = Sampler::new(&config, &space, 1, &mut builder.group("sampler")).unwrap();
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        let mut tape = device.tape();
        tape.read(&set);
        let parameters = energy.calibrated(&mut tape, false).unwrap();
        let theta = tape.upload(vec![0.0], (1, 1)).unwrap();
        let values = tape.upload(vec![x; anchors], (anchors, 1)).unwrap();
        let features = tape.upload(vec![0.5; anchors], (anchors, 1)).unwrap();
        let offsets = Arc::new(SetOffsets::uniform(1, anchors).unwrap());
        let targets =
            Targets { values, features: Some(features), elements: values, offsets, base: 0.0 };
        let followed = Followed { energy: &energy, parameters, theta };
        let places = targets.places().unwrap();
        let stream = Stream::new(2, "near");
        let count = (8, Purpose::Training);
        let draws = sampler.draw(&mut tape, followed, &places, count, stream.child(0)).unwrap();
        let near = Near { share: 0.3, domain: (-1.0, 1.0) };
        let law = (&sampler, theta);
        let draws = near.beside(&mut tape, law, &targets, &draws, stream.child(1)).unwrap();
        let shares = tape.download(draws.log_shares.unwrap()).unwrap();
        let densities = tape.download(draws.log_density).unwrap();
        let places = tape.download(draws.values).unwrap();
        assert_eq!(places.len(), anchors * draws.count);
        let estimates = |g: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let term = |at: usize| {
                let y = f64::from(places[at]);
                let inside = f64::from(u8::from((-1.0..=1.0).contains(&y)));
                inside * g(y) * f64::from(shares[at] - densities[at]).exp()
            };
            let row = |row: usize| (row * draws.count..(row + 1) * draws.count).map(term).sum();
            (0..anchors).map(row).collect()
        };
        let spike = |y: f64| (-0.5 * ((y - f64::from(x)) / std_dev).powi(2)).exp();
        let mass = std_dev * std::f64::consts::TAU.sqrt();
        for (found, expected) in [(estimates(&|_| 1.0), 2.0), (estimates(&spike), mass)] {
            let count = anchors as f64;
            let mean = found.iter().sum::<f64>() / count;
            let variance = found.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / count;
            let error = (variance / count).sqrt();
            assert!((mean - expected).abs() < 4.0 * error + 1e-6, "{mean} ± {error}, {expected}");
            // A single anchor's estimate is off by less than twice its value.
            assert!(variance.sqrt() < 2.0 * expected, "{variance} of {expected}");
        }
    }
}
