//! `ebp reproduce figure1`.

use std::path::PathBuf;

use clap::Args;
use ebp::experiment::figure1::Figure1Experiment;

use super::{ShareArgument, conduct, conduct_share, forget};
use crate::args::{Common, at_least_one};
use crate::failure::Failure;

const HELP: &str = "\
Every model is trained with every seed, then told 5, 15 and 30 elements of sets that it has not
seen and asked about fresh ones. Results are in nats per element: `nll` is the mean over contexts
and seeds on 2,000 fresh elements each, `quadrature` the same by integrating over the true
density, `excess` how far above the true density they lie. Models are those of the presets NAME,
NAME-ade and rival/NAME, and all of a dataset see as many training elements: `elements` counts those
that the optimiser saw, each as often as it was seen. Gaussian and Student-t processes are fitted until
nothing is left to gain, within that budget. `log Z` is bounded from both sides by the learned sampler. What is finished is kept in the folder: after an interruption the same
command goes on, in the middle of a training too.

Examples:
  ebp reproduce figure1
  ebp reproduce figure1 --datasets sines --models gp,ebp-importance --seeds 1
  ebp reproduce figure1 --json > figure1.json
  ebp reproduce figure1 --shard 2/4   # one of four jobs; then the same without --shard";

/// Arguments of `ebp reproduce figure1`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct Figure1Arguments {
    /// Built-in curves, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_value = "sines,lines,circle,phase")]
    datasets: Vec<String>,

    /// Models, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_value = "ebp-importance,ebp-ade,gp,tp,cnp,np,anp,vip")]
    models: Vec<String>,

    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    seeds: usize,

    /// Training elements of every model [default: those of the dataset's preset]
    #[arg(long, value_name = "N")]
    elements: Option<u64>,

    /// Folder of models, results and pictures
    #[arg(long, value_name = "DIR", default_value = "runs/figure1")]
    out: PathBuf,

    /// Forget what the folder holds and begin again
    #[arg(long, conflicts_with = "share")]
    force: bool,

    #[command(flatten)]
    shard: ShareArgument,

    #[command(flatten)]
    common: Common,
}

impl Figure1Arguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        forget(&self.out.join("results"), self.force)?;
        forget(&self.out.join("models"), self.force)?;
        let experiment = Figure1Experiment {
            datasets: self.datasets.clone(),
            models: self.models.clone(),
            seeds: self.seeds,
            elements: self.elements,
        };
        if let Some(share) = self.shard.share {
            return conduct_share(&self.common, self.out.clone(), share, |lab, share| {
                experiment.run_share(lab, share)
            });
        }
        conduct(&self.common, self.out.clone(), "figure1", |lab| experiment.run(lab))
    }
}
