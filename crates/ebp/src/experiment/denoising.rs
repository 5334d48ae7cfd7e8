//! The paper's denoising, and denoising of whole clouds.
//!
//! Two protocols on clouds that no choice has seen. `ball` perturbs the points within a radius of a random point and
//! moves those only; `everywhere` perturbs all points and moves all. Lengths are in the units of the
//! data, Chamfer distances to the clean clouds are means of squares.

use std::fmt::{self, Display};

use serde::Serialize;

use super::generated::chamfers;
use super::subject::Subject;
use super::text::{cells, table};
use super::{CloudSource, Findings, Laboratory, PartSizes};
use crate::Result;
use crate::figure::contact_sheet::draw_rows;
use crate::process::DenoiseSettings;
use crate::rng::Stream;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct DenoisingExperiment {
    /// The model.
    pub source: CloudSource,
    /// Noise in the ball.
    pub sigma: f32,
    /// Radius of the ball.
    pub radius: f32,
    /// Noise of the other protocol.
    pub sigma_everywhere: f32,
    /// How far points may move, in units of the noise: larger values forget where they were found.
    pub reach: f32,
    /// How many steps.
    pub steps: usize,
    /// The first step's size, in squared standard deviations of the data.
    pub step_size: f32,
}

impl Default for DenoisingExperiment {
    fn default() -> Self {
        Self {
            source: CloudSource::default(),
            sigma: 0.1,
            radius: 0.2,
            sigma_everywhere: 0.03,
            reach: 1.0,
            steps: 20,
            step_size: DenoiseSettings::default().step_size,
        }
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct DenoisingReport {
    /// Where the clouds come from.
    pub data: String,
    /// How many were learned from, chosen by and measured on.
    pub parts: PartSizes,
    /// Steps of denoising.
    pub steps: usize,
    /// One per protocol.
    pub rows: Vec<DenoisingRow>,
    /// Where the picture belongs.
    pub picture: String,
}

/// One protocol: Chamfer distances to the clean clouds.
#[derive(Clone, Debug, Serialize)]
pub struct DenoisingRow {
    /// Which.
    pub protocol: &'static str,
    /// Of the noise.
    pub sigma: f32,
    /// Of the noisy clouds.
    pub before: f64,
    /// Denoised with θ of the noisy cloud and what becomes of it.
    pub own_theta: f64,
    /// Denoised with θ of the clean cloud.
    pub clean_theta: f64,
    /// 1 − own_theta/before.
    pub removed: f64,
    /// Half of its 95 % interval over clouds.
    pub removed_error: f64,
}

/// 1 − Σ after/Σ before, and half of its 95 % interval over clouds: the ratio's residuals, linearised.
fn removed(before: &[f64], after: &[f64]) -> (f64, f64) {
    let total: f64 = before.iter().sum();
    let ratio = after.iter().sum::<f64>() / total;
    let residuals =
        before.iter().zip(after).map(|(before, after)| (after - ratio * before).powi(2));
    let count = before.len() as f64;
    let error = (residuals.sum::<f64>() * count / (count - 1.0).max(1.0)).sqrt() / total;
    (1.0 - ratio, 1.96 * error)
}

/// Clouds of a row of the picture.
const SHOWN: usize = 6;

impl DenoisingExperiment {
    /// Trains if need be, and denoises.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`].
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<DenoisingReport>> {
        let subject = self.source.subject(laboratory, "model", &[])?;
        let (mut rows, mut shown) = (Vec::new(), Vec::new());
        for (protocol, sigma, radius) in
            [("ball", self.sigma, Some(self.radius)), ("everywhere", self.sigma_everywhere, None)]
        {
            laboratory.watch.begin(&format!("denoising: {protocol}"));
            let clouds = self.clouds(&subject, sigma, radius)?;
            let to_clean =
                |found: &[Vec<f32>]| chamfers(found, &clouds.clean, subject.model()?.dim());
            let (before, own_theta) = (to_clean(&clouds.noisy)?, to_clean(&clouds.own)?);
            let (removed, removed_error) = removed(&before, &own_theta);
            let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len().max(1) as f64;
            rows.push(DenoisingRow {
                protocol,
                sigma,
                before: mean(&before),
                own_theta: mean(&own_theta),
                clean_theta: mean(&to_clean(&clouds.told)?),
                removed,
                removed_error,
            });
            shown.extend([clouds.clean, clouds.noisy, clouds.own]);
        }
        let sheet: Vec<&[Vec<f32>]> =
            shown.iter().map(|row| &row[..row.len().min(SHOWN)]).collect();
        let picture = laboratory.file("denoising.png");
        let report = DenoisingReport {
            data: subject.settings()?.data.source.clone(),
            parts: subject.sizes()?,
            steps: self.steps,
            rows,
            picture: picture.display().to_string(),
        };
        let drawn = draw_rows(&sheet, subject.model()?.dim());
        Ok(Findings { report, pictures: vec![(picture, drawn.into())] })
    }

    /// A protocol on all clouds that are measured on.
    fn clouds(&self, subject: &Subject, sigma: f32, radius: Option<f32>) -> Result<Protocol> {
        let model = subject.model()?;
        let (scale, dim) = (model.affine().scale, model.dim());
        let noise = sigma / scale;
        let settings = DenoiseSettings {
            num_steps: self.steps,
            step_size: self.step_size,
            noise: Some(noise * self.reach),
            ..DenoiseSettings::default()
        };
        let mut found = Protocol::default();
        for (number, set) in subject.references()?.into_iter().enumerate() {
            let stream = Stream::new(0, "denoising").child(number as u64);
            let mut draws = vec![0.0; set.len()];
            stream.child(0).fill_normal(0, 0, &mut draws);
            let centre_row = stream.child(1).permutation(set.len() / dim)[0];
            let centre = &set[centre_row * dim..(centre_row + 1) * dim];
            let is_fixed: Vec<bool> = set
                .chunks_exact(dim)
                .map(|point| {
                    let square: f32 =
                        point.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum();
                    radius.is_some_and(|radius| square.sqrt() > radius / scale)
                })
                .collect();
            let perturbed: Vec<f32> = set
                .iter()
                .zip(&draws)
                .enumerate()
                .map(|(place, (x, xi))| if is_fixed[place / dim] { *x } else { x + noise * xi })
                .collect();
            let code = model.encode_sets(&[&set])?.mean;
            let denoised = |theta: Option<&[f32]>| -> Result<Vec<f32>> {
                let clean = model.denoise_standardised(&perturbed, &is_fixed, theta, &settings)?;
                Ok(model.in_data_units(&clean))
            };
            found.own.push(denoised(None)?);
            found.told.push(denoised(Some(&code))?);
            found.clean.push(model.in_data_units(&set));
            found.noisy.push(model.in_data_units(&perturbed));
        }
        Ok(found)
    }
}

/// Clouds of one protocol in the units of the data.
#[derive(Default)]
struct Protocol {
    clean: Vec<Vec<f32>>,
    noisy: Vec<Vec<f32>>,
    own: Vec<Vec<f32>>,
    told: Vec<Vec<f32>>,
}

impl Display for DenoisingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["Chamfer ×10⁴", "σ", "noisy", "own θ", "clean θ", "removed"];
        let mut lines = vec![cells(head)];
        for row in &self.rows {
            let cell = |x: f64| format!("{:.2}", 1e4 * x);
            lines.push(vec![
                row.protocol.to_owned(),
                row.sigma.to_string(),
                cell(row.before),
                cell(row.own_theta),
                cell(row.clean_theta),
                format!("{:.0} ± {:.0} %", 100.0 * row.removed, 100.0 * row.removed_error),
            ]);
        }
        writeln!(
            f,
            "{}: {}\n{} steps; ± is half of a 95 % interval over clouds\n\n{}\npicture (clean, noisy, denoised): {}",
            self.data,
            self.parts,
            self.steps,
            table(&lines),
            self.picture
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where every cloud loses the same share there is nothing uncertain; of two clouds that lose
    /// nothing and all of it, the residuals are ±½ and their error 1.96 · √(2 · ½² · 2)/2.
    #[test]
    fn the_share_removed_has_the_error_of_a_ratio() {
        let (share, error) = removed(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]);
        assert!((share - 0.5).abs() < 1e-12 && error < 1e-12);
        let (share, error) = removed(&[1.0, 1.0], &[1.0, 0.0]);
        assert!((share - 0.5).abs() < 1e-12 && (error - 0.98).abs() < 1e-12, "{share} {error}");
    }
}
