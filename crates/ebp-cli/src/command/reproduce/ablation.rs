//! What each part of the training of clouds is worth, at one small scale.

use std::time::Instant;

use clap::Args;
use ebp::process::{DrawSettings, PointMethod, PointStart};
use ebp::rng::Stream;
use serde::Serialize;

use super::clouds::{CloudExperiment, Subject, keep_json};
use crate::command::cloud_model::{Generation, PriorName, chamfer, draw_rows};
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;

const HELP: &str = "\
Every variant is the preset with a few settings changed, trained for as many steps. `samples` come
from a Gaussian fitted to the training codes, points by resampling on a grid with annealed steps,
except in the rows `sampler`, whose points are the learned sampler's own draws.

Examples:
  ebp reproduce ablation
  ebp reproduce ablation --set train.num_steps=1000 --variants importance,ade-flow";

/// Arguments of `ebp reproduce ablation`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct AblationArguments {
    #[command(flatten)]
    experiment: CloudExperiment,

    /// Only these variants, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    variants: Vec<String>,
}

/// Names and settings of the variants.
const ADE: [&str; 3] = ["model.estimator=ade", "model.beta1=0.0", "model.sampler.beta1=0.0"];
const BLOCK: [&str; 2] = ["model.sampler.kind=block", "model.sampler.noise_schedule=constant"];

fn variants() -> Vec<(&'static str, Vec<&'static str>)> {
    let ade = |further: &[&'static str]| -> Vec<&'static str> { [&ADE[..], further].concat() };
    vec![
        ("importance", vec![]),
        (
            "importance-sampler",
            vec!["model.proposal.sampler_share=0.25", "model.sampler.dynamics=none"],
        ),
        ("score-matching", vec!["model.estimator=score-matching"]),
        ("ade-flow", ade(&[])),
        ("ade-flow-annealed", ade(&["model.sampler.noise_schedule=annealed"])),
        (
            "ade-flow-hamiltonian",
            ade(&[
                "model.sampler.dynamics=hamiltonian",
                "model.sampler.num_dynamics_steps=5",
                "model.sampler.step_size=0.02",
            ]),
        ),
        ("ade-block", ade(&BLOCK)),
        (
            "ade-block-annealed",
            ade(&["model.sampler.kind=block", "model.sampler.noise_schedule=annealed"]),
        ),
        ("kl-literal", vec!["model.kl_weight=1e5", "model.kl_warm_up=1"]),
        (
            "ade-block-literal",
            ade(&[
                "model.sampler.kind=block",
                "model.sampler.noise_schedule=constant",
                "model.kl_weight=1e5",
                "model.kl_warm_up=1",
            ]),
        ),
    ]
}

#[derive(Debug, Serialize)]
struct Row {
    variant: String,
    seconds: f64,
    #[serde(flatten)]
    scores: Generation,
    held_out_nats: f64,
    kl: f64,
    active_units: usize,
    reconstruction_cd: f64,
}

/// Trains all variants and prints a table.
pub(super) fn run(arguments: &AblationArguments) -> Result<(), Failure> {
    let rows = start_threads(arguments.experiment.threads)?.install(|| measure(arguments))?;
    keep_json(&arguments.experiment.file("ablation.json")?, &rows)?;
    if arguments.experiment.json {
        return output::print_json(&rows);
    }
    let header = [
        "",
        "1-NNA-CD %",
        "COV-CD %",
        "MMD-CD ×10³",
        "JSD ×10²",
        "rebuilt CD ×10³",
        "nats",
        "KL",
        "active",
        "s",
    ];
    let mut lines = vec![header.map(String::from).to_vec()];
    for row in &rows {
        lines.push(vec![
            row.variant.clone(),
            format!("{:.1}", 100.0 * row.scores.nna_cd),
            format!("{:.1}", 100.0 * row.scores.cov_cd),
            format!("{:.2}", 1e3 * row.scores.mmd_cd),
            row.scores.jsd.map_or("–".into(), |jsd| format!("{:.2}", 100.0 * jsd)),
            format!("{:.2}", 1e3 * row.reconstruction_cd),
            format!("{:.3}", row.held_out_nats),
            format!("{:.1}", row.kl),
            row.active_units.to_string(),
            // What an earlier run finished took no time in this one.
            if row.seconds < 1.0 { "–".into() } else { format!("{:.0}", row.seconds) },
        ]);
    }
    output::print(&output::table(&lines))
}

fn measure(arguments: &AblationArguments) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let known = variants();
    if let Some(unknown) =
        arguments.variants.iter().find(|name| known.iter().all(|(known, _)| known != name))
    {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        return Err(Failure::Usage(miette::miette!(
            help = format!("known are: {}", names.join(", ")),
            "there is no variant `{unknown}`"
        )));
    }
    let is_wanted = |name: &str| {
        arguments.variants.is_empty() || arguments.variants.iter().any(|wanted| wanted == name)
    };
    let mut sheet = Vec::new();
    for (name, settings) in known.into_iter().filter(|(name, _)| is_wanted(name)) {
        let further: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let started = Instant::now();
        let subject = arguments.experiment.subject(name, &further)?;
        let seconds = started.elapsed().as_secs_f64();
        let samples = subject.samples(PriorName::Gaussian, PointMethod::Annealed)?;
        rows.push(row(name, &subject, &samples, seconds)?);
        sheet.push(samples[..samples.len().min(6)].to_vec());
        if let Some(drawn) = sampler_clouds(&subject)? {
            rows.push(row(&format!("{name}, sampler"), &subject, &drawn, seconds)?);
            sheet.push(drawn[..drawn.len().min(6)].to_vec());
        }
    }
    let picture = arguments.experiment.file("ablation.png")?;
    let rows_of_sheet: Vec<&[Vec<f32>]> = sheet.iter().map(Vec::as_slice).collect();
    draw_rows(&picture, &rows_of_sheet, 3)?;
    Ok(rows)
}

/// Clouds that the learned sampler draws by itself, if there is one.
fn sampler_clouds(subject: &Subject) -> Result<Option<Vec<Vec<f32>>>, Failure> {
    let trained = &subject.trained;
    if !trained.process.has_sampler() {
        return Ok(None);
    }
    let stream = Stream::new(trained.settings.seed, "sampler");
    let count = subject.held_out().len();
    let theta = trained.draw_latents(PriorName::Gaussian, count, stream.child(0))?;
    let num_points = trained.settings.evaluation.num_points;
    let draw = DrawSettings { start: PointStart::Sampler, num_steps: 0, ..DrawSettings::default() };
    Ok(Some(trained.draw_clouds(&theta, num_points, &draw, stream.child(1))?.0))
}

fn row(name: &str, subject: &Subject, samples: &[Vec<f32>], seconds: f64) -> Result<Row, Failure> {
    let trained = &subject.trained;
    let (dim, num_points) = (trained.dim(), trained.settings.evaluation.num_points);
    let held_out = subject.held_out();
    let references = subject.raw(&held_out);
    let stream = Stream::new(0, "ablation");
    let found = trained.process.evaluate(&held_out, stream.child(0))?;
    let number = |name: &str| {
        found.iter().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, value)| *value)
    };
    let codes = trained.process.encode(&held_out)?;
    let (rebuilt, _) =
        trained.draw_clouds(&codes.mean, num_points, &DrawSettings::default(), stream.child(1))?;
    Ok(Row {
        variant: name.to_owned(),
        seconds,
        scores: Generation::measure(samples, &references, dim, num_points, 0)?,
        held_out_nats: number("nats"),
        kl: number("kl"),
        active_units: codes.num_active(),
        reconstruction_cd: chamfer(&rebuilt, &references, dim)?,
    })
}
