//! A model of clouds beside its training sets.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::path::Path;

use serde::Serialize;

use super::{Picture, folder_of};
use crate::Result;
use crate::experiment::generated::chamfer;
use crate::experiment::{Generation, GenerationRow, generation_table};
use crate::figure::contact_sheet::draw_rows;
use crate::model::{CloudData, Model};
use crate::process::DrawSettings;
use crate::rng::Stream;

/// Clouds per row of the contact sheet, and points of those that are drawn for it: more than are
/// measured, so that a person sees surfaces.
const COLUMNS: usize = 8;
const DRAWN_POINTS: usize = 2048;

/// What a model of clouds has learned.
#[derive(Clone, Debug, Serialize)]
pub struct CloudOutcome {
    /// Its folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// How training estimated log Z.
    pub estimator: &'static str,
    /// After how many steps.
    pub steps: u64,
    /// Of training.
    pub seconds: f64,
    /// Negative log-density of held-out points at θ = μ, in nats per standardised point: a plug-in
    /// value, no bound.
    pub held_out_nats: f64,
    /// −log p(set) per point is at most this with θ ~ N(0, I), up to the estimate of log Z.
    pub held_out_bound_nats: f64,
    /// KL(q(θ | set) ‖ N(0, I)) of held-out sets.
    pub held_out_kl: f64,
    /// Latent coordinates that say something.
    pub active_units: usize,
    /// Chamfer distance of held-out sets and clouds drawn from their own codes.
    pub reconstruction_cd: f64,
    /// Proposals per set for drawing.
    pub num_proposals: usize,
    /// How many they are worth.
    pub effective_proposals: f64,
    /// The law of θ.
    pub prior: &'static str,
    /// Samples and training sets beside held-out ones.
    pub rows: Vec<GenerationRow>,
    /// Where the picture belongs.
    pub picture: String,
}

pub(super) fn judge(
    model: &Model,
    data: &CloudData,
    plots: &Path,
) -> Result<(CloudOutcome, Picture)> {
    let clouds = model.clouds()?;
    let evaluation = &clouds.settings().evaluation;
    let stream = Stream::new(clouds.settings().seed, "outcome");
    let held_out = data.choice_sets(evaluation.num_sets);
    let number = clouds.evaluate(&held_out, stream.child(0))?;
    let (dim, num_points, count) = (clouds.dim(), evaluation.num_points, held_out.len());
    let raw = |sets: &[Cow<'_, [f32]>]| -> Vec<Vec<f32>> {
        sets.iter().map(|set| clouds.in_data_units(set)).collect()
    };
    let draw = |theta: &[f32], num_points: usize, number: u64| {
        let settings = DrawSettings::default();
        clouds.draw(theta, num_points, &settings, stream.child(number), &mut |_| {})
    };
    let references = raw(&held_out);
    let codes = clouds.encode_sets(&held_out)?;
    let (rebuilt, _) = draw(&codes.mean, num_points, 1)?;
    let theta = clouds.prior(evaluation.prior)?.sample(count, stream.child(2))?;
    let (samples, report) = draw(&theta, num_points, 3)?;
    let order = stream.child(4).permutation(data.train.num_sets());
    let oracle: Vec<_> = order.iter().take(count).map(|&set| data.train.set(set)).collect();
    let measure = |name: &str, found: &[Vec<f32>]| -> Result<GenerationRow> {
        let scores =
            Generation::measure(found, &references, dim, num_points, None, clouds.device())?;
        Ok(GenerationRow { name: name.to_owned(), scores })
    };
    let rows = vec![measure("samples", &samples)?, measure("training sets", &raw(&oracle))?];
    let first = |codes: &[f32], count: usize| {
        let end = (count * clouds.latent_dim()).min(codes.len());
        draw(&codes[..end], DRAWN_POINTS, 5)
    };
    let (shown_rebuilt, _) = first(&codes.mean, COLUMNS)?;
    let (shown_samples, _) = first(&theta, 2 * COLUMNS)?;
    let sheet: Vec<&[Vec<f32>]> = [&references[..references.len().min(COLUMNS)], &shown_rebuilt]
        .into_iter()
        .chain(shown_samples.chunks(COLUMNS))
        .collect();
    let path = plots.join("clouds.png");
    let outcome = CloudOutcome {
        run: folder_of(model),
        estimator: clouds.estimator(),
        steps: model.step(),
        seconds: model.seconds().unwrap_or(0.0),
        held_out_nats: number("nats"),
        held_out_bound_nats: number("bound_nats"),
        held_out_kl: number("kl"),
        active_units: codes.num_active(),
        reconstruction_cd: chamfer(&rebuilt, &references, dim)?,
        num_proposals: report.num_proposals,
        effective_proposals: report.effective_proposals,
        prior: evaluation.prior.name(),
        rows,
        picture: path.display().to_string(),
    };
    Ok((outcome, (path, draw_rows(&sheet, dim).into())))
}

impl Display for CloudOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} steps in {:.0} s, estimator {}, prior {}\n\n{}\n\
             held out, nats per point: {:.3} at θ = μ (plug-in, no bound), {:.3} by the bound with θ ~ N(0, I)\n\
             KL {:.1} nats per set, {} active units\n\
             reconstruction: Chamfer {:.2} ×10⁻³\n\
             drawing: {:.0} of {} proposals effective\n\
             picture (held out, rebuilt, two rows of samples): {}",
            self.steps,
            self.seconds,
            self.estimator,
            self.prior,
            generation_table(&self.rows),
            self.held_out_nats,
            self.held_out_bound_nats,
            self.held_out_kl,
            self.active_units,
            1e3 * self.reconstruction_cd,
            self.effective_proposals,
            self.num_proposals,
            self.picture
        )
    }
}
