//! `ebp reproduce consistency` and `ebp reproduce sbc`: whether processes and posteriors are what
//! probability asks for.

use std::path::PathBuf;

use clap::Args;
use ebp::experiment::calibration::KnownPosteriors;
use ebp::experiment::consistency::ConsistencyExperiment;

use super::conduct;
use crate::args::{Common, at_least_one};
use crate::failure::Failure;

const HELP: &str = "\
Two elements a and b of a set, a context C, and every density asked of the process itself, in nats:

  order     log p(a|C) p(b|C,a) - log p(b|C) p(a|C,b)    the chain rule, both ways
  joint     log p(a,b|C) - log p(a|C) p(b|C,a)           Bayes' rule
  marginal  log of the integral of p(a|C) p(b|C,a) over a, less log p(b|C)

Models are those of the presets NAME and rival/NAME on --dataset; `digits` are pictures whose targets
see context pixels in windows, `digits-latent` the same without. What is trained is kept in the folder.

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
    #[arg(default_value = "gp,tp,vip,ebp-importance,np,anp,cnp,digits,digits-latent")]
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
        let report = self.common.install(|| Ok(known.run()?))?;
        self.common.print(&report)
    }
}
