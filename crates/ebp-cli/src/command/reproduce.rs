//! `ebp reproduce`: the paper's experiments, one command each.

mod ablation;
mod cell;
mod clouds;
mod completion;
mod denoising;
mod energies;
mod figure1;
mod generation;
mod rivals;
mod table1;
mod table2;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use self::completion::CompletionArguments;
use crate::failure::Failure;

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
    /// Generated clouds beside held-out ones, with the training sets as the oracle
    Generation(generation::GenerationArguments),
    /// Chamfer distance to clean clouds before and after denoising
    Denoising(denoising::DenoisingArguments),
    /// Energies of held-out, generated and noise clouds, and how much they overlap
    Energies(energies::EnergiesArguments),
    /// Table 1: generation of airplanes, chairs and cars
    Table1(table1::Table1Arguments),
    /// Table 2: a linear classifier on features learned without labels
    Table2(table2::Table2Arguments),
    /// What each part of the training of clouds is worth
    Ablation(ablation::AblationArguments),
    /// Image completion on digits that the program draws: no data needed, minutes on a CPU
    Completion(CompletionArguments),
    /// Image completion on MNIST, beside neural processes
    Mnist(CompletionArguments),
    /// Image completion on CelebA at 32 x 32, beside neural processes
    Celeba(CompletionArguments),
}

const FIGURE1_HELP: &str = "\
Every model is trained with every seed, then told 5, 15 and 30 elements of sets that it has not
seen and asked about fresh ones. Results are in nats per element: `nll` is the mean over contexts
and seeds on 2,000 fresh elements each, `quadrature` the same by integrating over the true
density, `excess` how far above the true density they lie. What is finished is kept in the folder:
after an interruption the same command goes on.

Examples:
  ebp reproduce figure1
  ebp reproduce figure1 --datasets sines --models gp,ebp-importance --seeds 1
  ebp reproduce figure1 --json > figure1.json";

/// Arguments of `ebp reproduce figure1`.
#[derive(Debug, Args)]
#[command(after_help = FIGURE1_HELP)]
pub(crate) struct Figure1Arguments {
    /// Built-in curves, separated by commas
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "sines,lines,circle,phase"
    )]
    datasets: Vec<String>,

    /// Models, separated by commas
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "ebp-importance,ebp-ade,gp,tp,cnp,np,anp,vip"
    )]
    models: Vec<String>,

    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = crate::args::at_least_one)]
    seeds: usize,

    /// Folder of results and pictures
    #[arg(long, value_name = "DIR", default_value = "runs/figure1")]
    out: PathBuf,

    /// Forget what the folder holds and begin again
    #[arg(long)]
    force: bool,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the experiment that was named.
pub(crate) fn run(arguments: ReproduceArguments) -> Result<(), Failure> {
    match arguments.experiment {
        Experiment::Figure1(arguments) => figure1::run(&arguments),
        Experiment::Generation(arguments) => generation::run(&arguments),
        Experiment::Denoising(arguments) => denoising::run(&arguments),
        Experiment::Energies(arguments) => energies::run(&arguments),
        Experiment::Table1(arguments) => table1::run(&arguments),
        Experiment::Table2(arguments) => table2::run(&arguments),
        Experiment::Ablation(arguments) => ablation::run(&arguments),
        Experiment::Completion(arguments) => completion::run(&arguments, "digits", "completion"),
        Experiment::Mnist(arguments) => completion::run(&arguments, "mnist", "mnist"),
        Experiment::Celeba(arguments) => completion::run(&arguments, "celeba", "celeba"),
    }
}
