//! `ebp reproduce`: the paper's experiments, one command each.

mod clouds;
mod curves;
mod laws;
mod pictures;

use std::fmt::{self, Display};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ebp::Share;
use ebp::experiment::{Findings, Laboratory};
use serde::Serialize;

use self::clouds::{
    AblationArguments, DenoisingArguments, EnergiesArguments, GenerationArguments, Table1Arguments,
    Table2Arguments,
};
use self::curves::Figure1Arguments;
use self::laws::{ConsistencyArguments, DocumentArguments, SbcArguments, SimulationArguments};
use self::pictures::CompletionArguments;
use crate::args::Common;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::run::program;
use crate::{device, interrupt, theme};

/// Arguments of `ebp reproduce`.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArguments {
    #[command(subcommand)]
    experiment: Experiment,
}

/// The experiments.
#[derive(Debug, Subcommand)]
enum Experiment {
    /// Figure 1: learned densities of two-branched curves, beside the truth and all rivals
    Figure1(Figure1Arguments),
    /// Generated clouds beside held-out ones, with training sets in their place as a yardstick
    Generation(GenerationArguments),
    /// Chamfer distance to clean clouds before and after denoising
    Denoising(DenoisingArguments),
    /// Energies of held-out, generated and noise clouds, and how much they overlap
    Energies(EnergiesArguments),
    /// Table 1: generation of airplanes, chairs and cars
    Table1(Table1Arguments),
    /// Table 2: a linear classifier on features learned without labels
    Table2(Table2Arguments),
    /// What each part of the training of clouds is worth
    Ablation(AblationArguments),
    /// Image completion on digits that the program draws: no data needed, minutes on a CPU
    Completion(CompletionArguments),
    /// Image completion on MNIST, beside neural processes
    Mnist(CompletionArguments),
    /// Image completion on CelebA at 32 x 32, beside neural processes
    Celeba(CompletionArguments),
    /// How far processes are from having one law of sets, in nats
    Consistency(ConsistencyArguments),
    /// Simulation-based calibration of posteriors in closed form
    Sbc(SbcArguments),
    /// Topic models and the energy-based process on documents, chosen on one part and judged by another
    Documents(DocumentArguments),
    /// Patterns of known Gibbs processes beside those of spatstat: number of points and Ripley's K
    Simulation(SimulationArguments),
}

/// Runs the experiment that was named.
pub(crate) fn run(arguments: &ReproduceArguments) -> Result<(), Failure> {
    match &arguments.experiment {
        Experiment::Figure1(arguments) => arguments.run(),
        Experiment::Generation(arguments) => arguments.run(),
        Experiment::Denoising(arguments) => arguments.run(),
        Experiment::Energies(arguments) => arguments.run(),
        Experiment::Table1(arguments) => arguments.run(),
        Experiment::Table2(arguments) => arguments.run(),
        Experiment::Ablation(arguments) => arguments.run(),
        Experiment::Completion(arguments) => arguments.run("digits", "completion"),
        Experiment::Mnist(arguments) => arguments.run("mnist", "mnist"),
        Experiment::Consistency(arguments) => arguments.run(),
        Experiment::Sbc(arguments) => arguments.run(),
        Experiment::Simulation(arguments) => arguments.run(),
        Experiment::Documents(arguments) => arguments.run(),
        Experiment::Celeba(arguments) => arguments.run("celeba", "celeba"),
    }
}

/// Runs one in `folder`, keeps what it found as `name`.json, and prints it.
fn conduct<R: Serialize + Display + Send>(
    common: &Common,
    folder: PathBuf,
    name: &str,
    experiment: impl FnOnce(&mut Laboratory<'_>) -> ebp::Result<Findings<R>> + Send,
) -> Result<(), Failure> {
    conduct_by(None, common, folder, name, experiment)
}

/// The same by one seed.
fn conduct_by<R: Serialize + Display + Send>(
    seed: Option<u64>,
    common: &Common,
    folder: PathBuf,
    name: &str,
    experiment: impl FnOnce(&mut Laboratory<'_>) -> ebp::Result<Findings<R>> + Send,
) -> Result<(), Failure> {
    let (report, pictures) = common.install(|| {
        in_laboratory(common, folder, |laboratory| {
            let findings = experiment(laboratory)?;
            findings.keep(laboratory, name)?;
            let pictures: Vec<PathBuf> =
                findings.pictures.into_iter().map(|(path, _)| path).collect();
            Ok((findings.report, pictures))
        })
    })?;
    common.print(seed, &report)?;
    common.show(pictures.iter().map(PathBuf::as_path))
}

/// Works in a folder, watched, and stops when asked to.
fn in_laboratory<R>(
    common: &Common,
    folder: PathBuf,
    work: impl FnOnce(&mut Laboratory<'_>) -> ebp::Result<R>,
) -> Result<R, Failure> {
    let mut progress = Progress::new(common.quiet, &[]);
    let mut laboratory = Laboratory {
        folder,
        device: device::open()?,
        program: program(),
        watch: &mut progress,
        stop: Some(interrupt::wish()),
        theme: theme::chosen(),
    };
    Ok(work(&mut laboratory)?)
}

/// Runs a share of one in `folder`, beside other shares, and says what it has done.
fn conduct_share(
    common: &Common,
    folder: PathBuf,
    share: Share,
    experiment: impl FnOnce(&mut Laboratory<'_>, Share) -> ebp::Result<Vec<String>> + Send,
) -> Result<(), Failure> {
    let out = folder.display().to_string();
    let done = common.install(|| in_laboratory(common, folder, |lab| experiment(lab, share)))?;
    common.print(None, &Done { shard: share, done, out })
}

/// What a share of an experiment says.
#[derive(Debug, Serialize)]
struct Done {
    shard: Share,
    done: Vec<String>,
    out: String,
}

impl Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shard, done, out } = self;
        let what = if done.is_empty() { "nothing to do".to_owned() } else { done.join(", ") };
        writeln!(
            f,
            "share {shard} is done: {what}\nonce all are, the same command without `--shard` \
                     reports what `{out}` holds"
        )
    }
}

/// `--shard` of experiments that train several models.
#[derive(Clone, Copy, Debug, Args)]
struct ShareArgument {
    /// Do only share I of N, from 1: processes share the folder, and the same command without it reports
    #[arg(long = "shard", value_name = "I/N", help_heading = "Many jobs")]
    share: Option<Share>,
}

/// Removes what a folder holds, if that was asked for.
fn forget(folder: &std::path::Path, is_asked: bool) -> Result<(), Failure> {
    if is_asked && folder.is_dir() {
        std::fs::remove_dir_all(folder)
            .map_err(|error| Failure::cannot("remove", folder, &error))?;
    }
    Ok(())
}
