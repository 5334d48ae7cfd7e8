//! `ebp reproduce`: the paper's experiments, one command each.

mod clouds;
mod curves;
mod laws;
mod pictures;

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args, Subcommand};
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
        let mut progress = Progress::new(common.quiet, &[]);
        let mut laboratory = Laboratory {
            folder,
            device: device::open()?,
            program: program(),
            watch: &mut progress,
            stop: Some(interrupt::wish()),
            theme: theme::chosen(),
        };
        let findings = experiment(&mut laboratory)?;
        findings.keep(&laboratory, name)?;
        let pictures: Vec<PathBuf> = findings.pictures.into_iter().map(|(path, _)| path).collect();
        Ok((findings.report, pictures))
    })?;
    common.print(seed, &report)?;
    common.show(pictures.iter().map(PathBuf::as_path))
}

/// Removes what a folder holds, if that was asked for.
fn forget(folder: &std::path::Path, is_asked: bool) -> Result<(), Failure> {
    if is_asked && folder.is_dir() {
        std::fs::remove_dir_all(folder)
            .map_err(|error| Failure::cannot("remove", folder, &error))?;
    }
    Ok(())
}
