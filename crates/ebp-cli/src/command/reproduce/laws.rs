//! `ebp reproduce consistency`, `ebp reproduce sbc` and `ebp reproduce simulation`: whether processes,
//! posteriors and draws are what probability asks for.

use std::path::PathBuf;

use clap::Args;
use ebp::experiment::calibration::KnownPosteriors;
use ebp::experiment::consistency::ConsistencyExperiment;
use ebp::experiment::documents::DocumentExperiment;
use ebp::experiment::simulation::SimulationExperiment;
use ebp::pattern::Moves;

use super::conduct;
use crate::args::{Choice, Common, at_least_one, choice};
use crate::failure::Failure;
use crate::progress;

const HELP: &str = "\
Two elements a and b of a set, a context C, and every density asked of the process itself, in nats:

  order     log p(a|C) p(b|C,a) - log p(b|C) p(a|C,b)    the chain rule, both ways
  joint     log p(a,b|C) - log p(a|C) p(b|C,a)           Bayes' rule
  marginal  log of the integral of p(a|C) p(b|C,a) over a, less log p(b|C)

Models are those of the presets NAME and rival/NAME on --dataset; `digits` are pictures whose targets
see context pixels in windows, `digits-latent` the same without; `bruno`, `statistician` and `arcs` are
their presets, of sets without locations, in standard deviations. What is trained is kept in the folder.

Examples:
  ebp reproduce consistency
  ebp reproduce consistency --models gp,cnp --pairs 50 --json";

/// Arguments of `ebp reproduce consistency`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct ConsistencyArguments {
    /// Built-in curves
    #[arg(long, value_name = "NAME", default_value = "gp")]
    dataset: String,

    /// Models, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(
        default_value = "gp,tp,vip,ebp-importance,ebp-ade,np,anp,cnp,bruno,statistician,arcs,digits,digits-latent"
    )]
    models: Vec<String>,

    /// Pairs of elements
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    pairs: usize,

    /// Of these, pairs that the integral is computed for
    #[arg(long, value_name = "N", default_value_t = 30)]
    integrals: usize,

    /// Draws of a latent that densities average over
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = at_least_one)]
    draws: usize,

    /// Folder of models and results
    #[arg(long, value_name = "DIR", default_value = "runs/consistency")]
    out: PathBuf,

    #[command(flatten)]
    common: Common,
}

impl ConsistencyArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = ConsistencyExperiment {
            dataset: self.dataset.clone(),
            models: self.models.clone(),
            num_pairs: self.pairs,
            num_integrals: self.integrals,
            num_draws: self.draws,
        };
        conduct(&self.common, self.out.clone(), "consistency", |lab| experiment.run(lab))
    }
}

/// Arguments of `ebp reproduce sbc`.
#[derive(Debug, Args)]
pub(super) struct SbcArguments {
    /// Simulations of each model
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = at_least_one)]
    simulations: usize,

    /// Of all of them
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    common: Common,
}

impl SbcArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let known = KnownPosteriors { num_simulations: self.simulations, seed: self.seed };
        let report = self.common.install(|| {
            let count = known.num_simulated() as u64;
            let count = progress::count(count, self.common.quiet, "simulations");
            let found = known.run_watched(&|| count.inc(1))?;
            count.finish();
            Ok(found)
        })?;
        self.common.print(Some(self.seed), &report)
    }
}

/// Arguments of `ebp reproduce simulation`.
#[derive(Debug, Args)]
pub(super) struct SimulationArguments {
    /// Patterns of each law
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000, value_parser = at_least_one)]
    patterns: usize,

    /// Proposals before a pattern is read, per point
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = at_least_one)]
    steps_per_point: usize,

    /// How chains move points, beside births and deaths
    #[arg(long, default_value = "points", value_parser = choice(MOVES))]
    sampler: Moves,

    /// Of all of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    common: Common,
}

const MOVES: &[Choice<Moves>] = &[
    ("points", "One at a time, to any place", Moves::Points),
    ("langevin", "All at once, along the gradient of the potential", Moves::Langevin),
];

impl SimulationArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = SimulationExperiment {
            num_patterns: self.patterns,
            steps_per_point: self.steps_per_point,
            moves: self.sampler,
            seed: self.seed,
        };
        let report = self.common.install(|| {
            let count = experiment.num_drawn() as u64;
            let count = progress::count(count, self.common.quiet, "patterns");
            let found = experiment.run_watched(&|| count.inc(1))?;
            count.finish();
            Ok(found)
        })?;
        self.common.print(Some(self.seed), &report)
    }
}

const DOCUMENTS_HELP: &str = "\
Families are `lda`, `energy-based, no urn` and `energy-based`; each has a few candidates. Document i belongs to
part i mod --parts. Candidates learn from all but the last two parts and are compared on the last but one; the
best of each family learns from all but the last, with every seed, and is judged by the last.

What is trained is kept in the folder: after an interruption the same command goes on.

Examples:
  ebp reproduce documents --data 20news.feat
  ebp reproduce documents --data reuters.feat --families lda --seeds 1 --out runs/reuters";

/// Arguments of `ebp reproduce documents`.
#[derive(Debug, Args)]
#[command(after_help = DOCUMENTS_HELP)]
pub(super) struct DocumentArguments {
    /// Bags of words
    #[arg(long, value_name = "FILE", default_value = "bars")]
    data: String,

    /// Families, separated by semicolons [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ';')]
    families: Vec<String>,

    /// Seeds of the last judgement, separated by commas
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,

    /// Parts of the corpus
    #[arg(long, value_name = "N", default_value_t = 10)]
    parts: usize,

    /// Change a setting of every model, such as train.num_steps=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Folder of models and results
    #[arg(long, value_name = "DIR", default_value = "runs/documents")]
    out: PathBuf,

    #[command(flatten)]
    common: Common,
}

impl DocumentArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = DocumentExperiment {
            source: self.data.clone(),
            families: self.families.clone(),
            seeds: self.seeds.clone(),
            num_parts: self.parts,
            changes: self.set.clone(),
        };
        conduct(&self.common, self.out.clone(), "documents", |lab| experiment.run(lab))
    }
}
