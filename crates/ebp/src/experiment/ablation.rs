//! What each part of the training of clouds is worth, at one small scale.
//!
//! Every variant is the preset with a few settings changed, trained for as many steps. Samples come
//! from a Gaussian fitted to the training codes, points by resampling on a grid with annealed steps,
//! except in the rows `sampler`, whose points are the learned sampler's own draws. All is measured on
//! the sets that settings are chosen by, since variants are compared in order to choose.

use std::fmt::{self, Display};

use serde::Serialize;

use super::generated::chamfer;
use super::subject::Subject;
use super::text::{cells, table};
use super::{CloudSource, Findings, Generation, Laboratory, MeasuredOn};
use crate::figure::contact_sheet::draw_rows;
use crate::model::PriorKind;
use crate::process::{DrawSettings, PointMethod, PointStart};
use crate::rng::Stream;
use crate::{Error, Result};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct AblationExperiment {
    /// The model that is varied, measured on the sets that settings are chosen by.
    pub source: CloudSource,
    /// Only these variants; all of [`variants`] if empty.
    pub variants: Vec<String>,
}

impl Default for AblationExperiment {
    fn default() -> Self {
        let source = CloudSource { on: MeasuredOn::Choose, ..CloudSource::default() };
        Self { source, variants: Vec::new() }
    }
}

/// All variants.
#[derive(Clone, Debug, Serialize)]
pub struct AblationReport {
    /// In the order they were trained.
    pub rows: Vec<AblationRow>,
}

/// One variant.
#[derive(Clone, Debug, Serialize)]
pub struct AblationRow {
    /// Its name.
    pub variant: String,
    /// Of training, where they are known.
    pub seconds: Option<f64>,
    /// How good its samples are.
    #[serde(flatten)]
    pub scores: Generation,
    /// Negative log density of held-out points at θ = μ, a plug-in value.
    pub held_out_nats: f64,
    /// −log p(set) per point is at most this with θ ~ N(0, I), up to the estimate of log Z.
    pub held_out_bound_nats: f64,
    /// KL(q(θ | set) ‖ N(0, I)) of held-out sets.
    pub kl: f64,
    /// Latent coordinates that say something.
    pub active_units: usize,
    /// Chamfer distance of held-out sets and clouds drawn from their own codes.
    pub reconstruction_cd: f64,
}

const ADE: &str = "model.estimator=ade";
/// Draws as the paper uses them.
const PUBLISHED: [&str; 5] = [
    "model.beta1=0.0",
    "model.sampler.beta1=0.0",
    "model.sampler.negative_phase=plain",
    "model.sampler.uniform_share=0",
    "model.sampler.reverse_kernel=random-walk",
];
const LANGEVIN: &str = "model.sampler.dynamics=langevin";
const LITERAL_KL: [&str; 2] = ["model.kl_weight=1e5", "model.kl_warm_up=1"];
/// Clouds of a row of the picture.
const SHOWN: usize = 6;

/// Names of the variants, and what each changes.
pub fn variants() -> Vec<(&'static str, Vec<&'static str>)> {
    let ade = |further: &[&'static str]| -> Vec<&'static str> { [&[ADE], further].concat() };
    let published = |further: &[&'static str]| ade(&[&PUBLISHED[..], further].concat());
    let (flow, block) = ("model.sampler.kind=flow", "model.sampler.kind=block");
    let annealed = "model.sampler.noise_schedule=annealed";
    let hamiltonian = [
        flow,
        "model.sampler.dynamics=hamiltonian",
        "model.sampler.num_dynamics_steps=5",
        "model.sampler.step_size=0.02",
    ];
    vec![
        ("importance", vec![]),
        ("importance-sampler", vec!["model.proposal.sampler_share=0.25"]),
        ("score-matching", vec!["model.estimator=score-matching"]),
        ("ade", ade(&[])),
        (
            "ade-plain",
            ade(&["model.sampler.negative_phase=plain", "model.sampler.uniform_share=0"]),
        ),
        ("ade-flow", ade(&[flow, "model.sampler.uniform_share=0"])),
        ("ade-langevin", ade(&[LANGEVIN])),
        ("ade-langevin-walk", ade(&[LANGEVIN, "model.sampler.reverse_kernel=random-walk"])),
        ("published-flow", published(&[flow, LANGEVIN])),
        ("published-flow-annealed", published(&[flow, LANGEVIN, annealed])),
        ("published-flow-hamiltonian", published(&hamiltonian)),
        ("published-block", published(&[block, LANGEVIN])),
        ("published-block-annealed", published(&[block, LANGEVIN, annealed])),
        ("kl-literal", LITERAL_KL.to_vec()),
        ("published-block-literal", published(&[&[block, LANGEVIN][..], &LITERAL_KL].concat())),
    ]
}

impl AblationExperiment {
    /// Trains and measures all variants.
    ///
    /// # Errors
    ///
    /// As [`Laboratory::model`]; [`Error::Refused`] if there is no such variant.
    pub fn run(&self, laboratory: &mut Laboratory<'_>) -> Result<Findings<AblationReport>> {
        let known = variants();
        let is_known = |name: &&String| known.iter().all(|(known, _)| known != name);
        if let Some(unknown) = self.variants.iter().find(is_known) {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            return Err(Error::refused(format!("there is no variant `{unknown}`"))
                .with_help(format!("known are: {}", names.join(", "))));
        }
        let is_wanted =
            |name: &str| self.variants.is_empty() || self.variants.iter().any(|w| w == name);
        if self.source.on != MeasuredOn::Choose {
            let message = "variants are compared in order to choose among them";
            let help = "measure them on the sets that settings are chosen by";
            return Err(Error::refused(message).with_help(help));
        }
        let (mut rows, mut sheet, mut dim) = (Vec::new(), Vec::new(), 3);
        for (name, changes) in known.into_iter().filter(|(name, _)| is_wanted(name)) {
            let further: Vec<String> = changes.iter().map(ToString::to_string).collect();
            let subject = self.source.subject(laboratory, name, &further)?;
            dim = subject.model()?.dim();
            laboratory.watch.begin(&format!("measuring {name}"));
            let samples = subject.samples(PriorKind::Gaussian, PointMethod::Annealed)?;
            rows.push(row(name, &subject, &samples)?);
            sheet.push(samples[..samples.len().min(SHOWN)].to_vec());
            if let Some(drawn) = sampler_clouds(&subject)? {
                rows.push(row(&format!("{name}, sampler"), &subject, &drawn)?);
                sheet.push(drawn[..drawn.len().min(SHOWN)].to_vec());
            }
        }
        let rows_of_sheet: Vec<&[Vec<f32>]> = sheet.iter().map(Vec::as_slice).collect();
        let picture = (laboratory.file("ablation.png"), draw_rows(&rows_of_sheet, dim).into());
        Ok(Findings { report: AblationReport { rows }, pictures: vec![picture] })
    }
}

/// Clouds that the learned sampler draws by itself, if there is one.
fn sampler_clouds(subject: &Subject) -> Result<Option<Vec<Vec<f32>>>> {
    let model = subject.model()?;
    if !model.has_sampler() {
        return Ok(None);
    }
    let stream = Stream::new(model.settings().seed, "sampler");
    let count = subject.num_references()?;
    let theta = model.prior(PriorKind::Gaussian)?.sample(count, stream.child(0))?;
    let draw = DrawSettings { start: PointStart::Sampler, num_steps: 0, ..DrawSettings::default() };
    let num_points = subject.num_points()?;
    Ok(Some(model.draw(&theta, num_points, &draw, stream.child(1), &mut |_| {})?.0))
}

fn row(name: &str, subject: &Subject, samples: &[Vec<f32>]) -> Result<AblationRow> {
    let model = subject.model()?;
    let (dim, num_points) = (model.dim(), subject.num_points()?);
    let held_out = subject.references()?;
    let references = subject.raw(&held_out)?;
    let stream = Stream::new(0, "ablation");
    let number = model.evaluate(&held_out, stream.child(0))?;
    let codes = model.encode_sets(&held_out)?;
    let draw = DrawSettings::default();
    let (rebuilt, _) = model.draw(&codes.mean, num_points, &draw, stream.child(1), &mut |_| {})?;
    Ok(AblationRow {
        variant: name.to_owned(),
        seconds: subject.seconds(),
        scores: Generation::measure(samples, &references, dim, num_points, None, model.device())?,
        held_out_nats: number("nats"),
        held_out_bound_nats: number("bound_nats"),
        kl: number("kl"),
        active_units: codes.num_active(),
        reconstruction_cd: chamfer(&rebuilt, &references, dim)?,
    })
}

impl Display for AblationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = [
            "",
            "1-NNA-CD %",
            "COV-CD %",
            "MMD-CD ×10³",
            "JSD ×10²",
            "rebuilt CD ×10³",
            "nats at μ",
            "bound",
            "KL",
            "active",
            "s",
        ];
        let mut lines = vec![cells(head)];
        for row in &self.rows {
            lines.push(vec![
                row.variant.clone(),
                format!("{:.1}", 100.0 * row.scores.nna_cd),
                format!("{:.1}", 100.0 * row.scores.cov_cd),
                format!("{:.2}", 1e3 * row.scores.mmd_cd),
                row.scores.jsd.map_or("–".into(), |jsd| format!("{:.2}", 100.0 * jsd)),
                format!("{:.2}", 1e3 * row.reconstruction_cd),
                format!("{:.3}", row.held_out_nats),
                format!("{:.3}", row.held_out_bound_nats),
                format!("{:.1}", row.kl),
                row.active_units.to_string(),
                row.seconds.map_or("–".into(), |seconds| format!("{seconds:.0}")),
            ]);
        }
        f.write_str(&table(&lines))
    }
}
