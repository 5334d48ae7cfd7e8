//! `ebp reproduce completion`, `mnist` and `celeba`.

use std::path::PathBuf;

use clap::Args;
use ebp::experiment::completion::CompletionExperiment;
use ebp::model::Settings;
use miette::miette;

use super::{conduct_by, forget};
use crate::args::{Common, at_least_one};
use crate::failure::Failure;

const HELP: &str = "\
The first model is trained as its preset says, or for `--seconds`; every other gets as many steps
as fit into the same time, by the median of fifteen steps of each. Rivals have their own settings, the
presets rival/pictures/NAME; with -levels they give shares of the 256 levels, not Gaussians. Held-out pictures are completed
from the parts named below, with 20 draws of the latent each:

  bits/dim       exact probability of the 256 levels per unknown pixel, by the mixture over draws;
                 Gaussians get the integral of their density over a level's cell
  joint          the same for all unknown pixels of a picture together (a bound, by draws of the
                 latent given everything where the model has such a law)
  by density     by the density at the dequantised value, as rivals are trained
  best error     squared error of the best of all draws, values on [-1, 1]
  diversity      variance over draws
  agree          completions that a classifier takes for the digit that was there
  where decided  the same where a classifier of upper halves is 95 % sure, and how often it is
  kinds          different digits among the draws of a picture
  in rounds      all unknown pixels together where later ones see earlier ones, and completions
                 drawn in that way: `--set evaluation.rounds=8`

What is finished is kept in the folder: after an interruption the same command goes on, in the
middle of a training too. So the models can be trained one by one, with `--models`, before all of
them are named for the table.";

/// Arguments of the experiments with pictures.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct CompletionArguments {
    /// Folder or zip of the pictures [`completion` draws its own]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    /// The preset, such as mnist-grid [default: that of the experiment]
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,

    /// Models, separated by commas: ebp-exact, ebp-importance, ebp-ade, cnp, np, anp, convcnp,
    /// convnp; rivals also with -levels, such as convcnp-levels
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_value = "ebp-exact,convcnp,cnp,np,anp")]
    models: Vec<String>,

    /// Train every model for so long in place of the preset's steps
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    seconds: Option<usize>,

    /// Change a setting of the preset, such as train.num_steps=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Folder of results, models and pictures [default: runs/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Forget what the folder holds and begin again
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    common: Common,
}

impl CompletionArguments {
    pub(super) fn run(&self, preset: &str, name: &str) -> Result<(), Failure> {
        let preset = self.preset.as_deref().unwrap_or(preset);
        let mut changes = vec![format!("seed={}", self.seed)];
        if let Some(data) = &self.data {
            let text = toml::Value::String(data.to_string_lossy().into_owned());
            changes.push(format!("data.source={text}"));
        }
        changes.extend(self.set.iter().cloned());
        let Settings::Pictures(settings) = Settings::preset(preset, &changes)? else {
            return Err(Failure::Usage(miette!("`{preset}` is no preset of pictures")));
        };
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name));
        forget(&out, self.force)?;
        let experiment = CompletionExperiment {
            name: name.to_owned(),
            settings: *settings,
            models: self.models.clone(),
            changes,
            seconds: self.seconds.map(|seconds| seconds as f64),
        };
        conduct_by(Some(self.seed), &self.common, out, name, |lab| experiment.run(lab))
    }
}
