//! What was typed, before anything is checked against the machine.

mod choice;
mod common;
mod metric;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ebp::experiment::bench::BenchCase;
use ebp::point::cpu::SimdLevel;
use ebp::point::{Activation, ContextAt};

pub(crate) use self::choice::{Choice, choice, name_of};
pub(crate) use self::common::{Common, PRIORS};
pub(crate) use self::metric::{DistanceArguments, MetricsArguments, PaperClass};
use crate::command::calibrate::CalibrateArguments;
use crate::command::classify::ClassifyArguments;
use crate::command::complete::CompleteArguments;
use crate::command::completions::CompletionsArguments;
use crate::command::data::DataArguments;
use crate::command::denoise::DenoiseArguments;
use crate::command::doctor::DoctorArguments;
use crate::command::encode::EncodeArguments;
use crate::command::export::ExportArguments;
use crate::command::man::ManArguments;
use crate::command::merge::MergeArguments;
use crate::command::plot::PlotArguments;
use crate::command::predict::PredictArguments;
use crate::command::query::QueryArguments;
use crate::command::reference::ReferenceArguments;
use crate::command::render::RenderArguments;
use crate::command::reproduce::ReproduceArguments;
use crate::command::sample::SampleArguments;
use crate::command::score::ScoreArguments;
use crate::command::train::TrainArguments;
use crate::command::view::ViewArguments;
use crate::device::DeviceArguments;
use crate::show::ShowArguments;
use crate::theme::ThemeArguments;

/// Energy-based processes: probability models for sets.
#[derive(Debug, Parser)]
#[command(name = "ebp", version, about, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    #[command(flatten)]
    pub(crate) show: ShowArguments,

    #[command(flatten)]
    pub(crate) theme: ThemeArguments,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a model on built-in curves, shapes or pictures, or on data of your own
    Train(TrainArguments),
    /// Ask a trained model for densities, quantiles, modes and samples
    Predict(PredictArguments),
    /// Say whether a model's densities and intervals hold what they promise, and recalibrate them
    Calibrate(CalibrateArguments),
    /// Draw new clouds from a trained model
    Sample(SampleArguments),
    /// Say how likely clouds and their points are
    Score(ScoreArguments),
    /// Clean a noisy cloud
    Denoise(DenoiseArguments),
    /// Turn clouds into features
    Encode(EncodeArguments),
    /// Fill in the missing pixels of a picture, several times
    Complete(CompleteArguments),
    /// Keep of a run what its model needs, to share it
    Export(ExportArguments),
    /// Draw the curves of a run
    Plot(PlotArguments),
    /// Draw clouds as shaded spheres, for papers and slides
    Render(Box<RenderArguments>),
    /// Make a page to look at a model, a run, clouds or pictures with, or watch a run as it goes
    View(ViewArguments),
    /// Reproduce an experiment of the paper
    Reproduce(ReproduceArguments),
    /// Measure the primitive's operations against the machine's own peak
    Bench(BenchArguments),
    /// What this machine has, what will be used, and why
    Doctor(DoctorArguments),
    /// Measure how far two sets of points are apart
    Distance(DistanceArguments),
    /// Compare a collection of generated sets with real ones
    Metrics(MetricsArguments),
    /// Put the parts of a command together that ran with --shard
    Merge(MergeArguments),
    /// Read classes off features with a linear support vector machine
    Classify(ClassifyArguments),
    /// Bring data in, look at it, and draw built-in shapes
    Data(DataArguments),
    /// Find items like given ones, or documents like a document
    Query(QueryArguments),
    /// Print what makes a shell complete commands, options and their values
    Completions(CompletionsArguments),
    /// Write manual pages, one a command
    Man(ManArguments),
    /// Write pages of all commands, settings and presets
    Reference(ReferenceArguments),
}

/// The most threads that may be asked for.
const MOST_THREADS: usize = 1024;

const BENCH_HELP: &str = "\
How the numbers are made:
  ms             median of the runs, after one run that is not counted
  gflops         arithmetic of the matrix products by formula, divided by ms
  peak_fraction  gflops divided by the multiply-add rate of the widest vectors, in the same run
                 (before and after the cases, the larger of the two)
  kernel_ms      on a GPU: what its kernels take, without copies, checks and waiting (median of 5
                 further runs), with their own kernel_peak_fraction; there the peak is that of large
                 matrix products in the same precision
  kernel_share   kernel_ms divided by ms: in the rest of the time the GPU waits for the host. Marks
                 around kernels take a microsecond or two each, so that many short ones look longer
  launches       how many kernels, matrix products, and fills and copies of its memory a run sends to
                 the GPU
  peak_rss_mib   largest resident memory of the process during the case; Linux only

The formula: a layer from a to b numbers costs 2ab per element forward, as much again for its
data gradient and for its weight gradient; context maps cost 2kb once per set. The first layer
has a data gradient only where the elements need one. langevin20 and leapfrog20 are 21 scores.
encoder_backward counts the forward pass of all elements, and forward and backward of the
critical elements and the outputs they win only, because max pooling sends gradient to no
others. candidates256 counts the forward pass twice, because the gradient gets log Z but no
activations. training_step is a step of `ebp train` with as many proposals as points: forward and
backward of the energy at both, and encoder_backward.

importance_step, paper_ade_step, ade_step, mnist_step and celeba_step are whole training steps of
the presets cloud, paper/cloud, cloud-ade, mnist and celeba with their own networks and numbers, over
random data, cut to --sets and --points where these are smaller (--json tells all settings). Their
gflops are not counted. On the CPU a step's batch is made before its time begins; on a GPU during the
step before, as in training.

Examples:
  ebp bench
  ebp bench small --cases energy_backward,langevin20 --threads 1
  ebp bench --sets 16 --points 500 --context-dim 64 --activation silu --json";

/// Arguments of `ebp bench`.
#[derive(Debug, Args)]
#[command(after_long_help = BENCH_HELP)]
pub(crate) struct BenchArguments {
    /// Sizes to start from; the flags below change them
    #[arg(value_enum, default_value_t = NamedSize::PaperCloud)]
    pub(crate) size: NamedSize,

    /// Number of sets in the batch
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Sizes")]
    pub(crate) sets: Option<usize>,

    /// Elements of each set
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Sizes")]
    pub(crate) points: Option<usize>,

    /// Numbers of an element
    #[arg(long, value_name = "N", value_parser = at_least_one, help_heading = "Sizes")]
    pub(crate) value_dim: Option<usize>,

    /// Numbers of a set's context, 0 for none
    #[arg(long, value_name = "N", help_heading = "Sizes")]
    pub(crate) context_dim: Option<usize>,

    /// Hidden widths of the energy, such as 128,64
    #[arg(
        long,
        value_name = "WIDTHS",
        value_delimiter = ',',
        value_parser = at_least_one,
        help_heading = "Sizes"
    )]
    pub(crate) energy_widths: Option<Vec<usize>>,

    /// Widths of the encoder, output last, such as 128,256,256,512
    #[arg(
        long,
        value_name = "WIDTHS",
        value_delimiter = ',',
        value_parser = at_least_one,
        help_heading = "Sizes"
    )]
    pub(crate) encoder_widths: Option<Vec<usize>>,

    /// Activation of the energy (the encoder always has relu; the case `score_backward` takes silu
    /// in place of a piecewise linear one)
    #[arg(long, default_value = "relu", value_parser = choice(ACTIVATIONS), help_heading = "Sizes")]
    pub(crate) activation: Activation,

    /// Layers of the energy that receive the context
    #[arg(long, default_value = "first", value_parser = choice(CONTEXT_AT), help_heading = "Sizes")]
    pub(crate) context_at: ContextAt,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = number_of_threads)]
    pub(crate) threads: Option<usize>,

    /// Instruction set of the CPU kernels
    #[arg(long, value_enum, default_value_t = SimdName::Auto)]
    pub(crate) simd: SimdName,

    /// Timed runs of each case [default: as many as fit into two seconds, 3 to 25]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) repeats: Option<usize>,

    /// Only these cases, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "CASES", value_parser = choice(CASES))]
    pub(crate) cases: Vec<BenchCase>,

    /// Seed of the data and the networks
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,

    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Sizes that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamedSize {
    /// The paper's point clouds: 64 sets of 2048 points in space, context 512
    PaperCloud,
    /// 64 sets of 64 points in space, context 128
    Small,
}

const ACTIVATIONS: &[Choice<Activation>] = &[
    ("relu", "max(x, 0)", Activation::Relu),
    ("leaky-relu", "x, or a hundredth of it below 0", Activation::LEAKY_RELU),
    ("silu", "x times its logistic function", Activation::Silu),
    ("softplus", "log(1 + exp x)", Activation::Softplus),
    ("tanh", "the hyperbolic tangent", Activation::Tanh),
];

const CONTEXT_AT: &[Choice<ContextAt>] = &[
    ("first", "The first layer", ContextAt::FirstLayer),
    ("every", "Every layer", ContextAt::EveryLayer),
];

const CASES: &[Choice<BenchCase>] = &[
    ("energy_value", "f of every element", BenchCase::EnergyValue),
    (
        "energy_backward",
        "f, and the mean energy's gradient by parameters and context",
        BenchCase::EnergyBackward,
    ),
    ("score", "f and its gradient by every element", BenchCase::Score),
    (
        "score_backward",
        "Gradients by parameters and context through score and value, smooth activation",
        BenchCase::ScoreBackward,
    ),
    ("langevin20", "20 Langevin steps, clipped, with noise", BenchCase::Langevin20),
    ("leapfrog20", "20 leapfrog steps, clipped", BenchCase::Leapfrog20),
    (
        "candidates256",
        "log Z over 256 shared candidates per location, and its gradient",
        BenchCase::Candidates256,
    ),
    ("encoder_value", "The encoder, max pooled", BenchCase::EncoderValue),
    (
        "encoder_backward",
        "The encoder, max pooled, and its gradient by parameters",
        BenchCase::EncoderBackward,
    ),
    (
        "training_step",
        "A whole training step on clouds, with Adam and the next batch prepared meanwhile",
        BenchCase::TrainingStep,
    ),
    ("importance_step", "A training step of the preset cloud", BenchCase::ImportanceStep),
    (
        "paper_ade_step",
        "A training step of the preset paper/cloud: block LSTM, Langevin steps with gradients",
        BenchCase::PaperAdeStep,
    ),
    ("ade_step", "A training step of the preset cloud-ade", BenchCase::AdeStep),
    ("mnist_step", "A training step of the preset mnist", BenchCase::MnistStep),
    ("celeba_step", "A training step of the preset celeba", BenchCase::CelebaStep),
];

/// An instruction set by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimdName {
    /// The fastest one this machine has
    Auto,
    /// What every CPU runs
    Portable,
    /// AVX2 and FMA
    Avx2,
    /// AVX-512 F, DQ and VL
    Avx512,
}

impl SimdName {
    /// The level asked for, `None` for the fastest.
    pub(crate) fn level(self) -> Option<SimdLevel> {
        match self {
            Self::Auto => None,
            Self::Portable => Some(SimdLevel::Portable),
            Self::Avx2 => Some(SimdLevel::Avx2),
            Self::Avx512 => Some(SimdLevel::Avx512),
        }
    }
}

/// A whole number above zero.
pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("must be a whole number of at least 1".into()),
        Ok(number) => Ok(number),
    }
}

/// Far more threads than cores is a typing error, and would take minutes to start.
pub(crate) fn number_of_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=MOST_THREADS) => Ok(number),
        _ => Err(format!("must be a whole number of at least 1 and at most {MOST_THREADS}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn typed_names_are_those_of_the_library() {
        for (name, _, activation) in ACTIVATIONS {
            assert_eq!(*name, activation.name());
        }
        assert_eq!(CASES.len(), BenchCase::ALL.len());
        for ((name, _, case), known) in CASES.iter().zip(BenchCase::ALL) {
            assert!(*name == case.name() && *case == known);
        }
    }

    /// Only a script for a shell is a result that JSON could not hold.
    #[test]
    fn every_command_can_print_json() {
        fn check(command: &clap::Command) {
            if command.get_subcommands().next().is_some() {
                return command.get_subcommands().for_each(check);
            }
            let has_json = command.get_arguments().any(|argument| argument.get_id() == "json");
            assert_eq!(has_json, command.get_name() != "completions", "{}", command.get_name());
        }
        check(&Arguments::command());
    }

    #[test]
    fn zero_and_words_are_no_counts() {
        assert!(at_least_one("0").is_err());
        assert!(at_least_one("-3").is_err());
        assert!(at_least_one("many").is_err());
        assert_eq!(at_least_one("12"), Ok(12));
        assert_eq!(number_of_threads("12"), Ok(12));
        assert!(number_of_threads("0").is_err());
        assert!(number_of_threads("100000").is_err());
    }
}
