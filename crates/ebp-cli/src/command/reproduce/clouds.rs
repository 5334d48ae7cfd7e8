//! The experiments on clouds.

use std::path::PathBuf;

use clap::Args;
use ebp::experiment::ablation::AblationExperiment;
use ebp::experiment::denoising::DenoisingExperiment;
use ebp::experiment::energies::EnergiesExperiment;
use ebp::experiment::generation::GenerationExperiment;
use ebp::experiment::table1::Table1Experiment;
use ebp::experiment::table2::Table2Experiment;
use ebp::experiment::{CloudSource, MeasuredOn};
use ebp::model::PriorKind;
use ebp::process::DenoiseSettings;

use super::{ShareArgument, conduct, conduct_share};
use crate::args::{Choice, Common, PRIORS, at_least_one, choice};
use crate::command::classify::{CostArgument, cost};
use crate::failure::Failure;

/// Arguments of all experiments on clouds.
#[derive(Clone, Debug, Args)]
struct CloudArguments {
    /// Settings of the model
    #[arg(long, value_name = "PRESET", default_value = "shapes")]
    preset: String,

    /// Built-in shapes by name, or a file, folder or cache of clouds [default: the preset's]
    #[arg(long, value_name = "PATH|NAME")]
    data: Option<String>,

    /// A model that is trained already, in place of a preset; its own data are used
    #[arg(long, value_name = "DIR", conflicts_with_all = ["preset", "data", "set"])]
    model: Option<PathBuf>,

    /// Change a setting, such as train.num_steps=500; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Folder of models, results and pictures; what is finished there is not done again
    #[arg(long, value_name = "DIR", default_value = "runs/reproduce")]
    out: PathBuf,

    #[command(flatten)]
    common: Common,
}

impl CloudArguments {
    fn source(&self, on: MeasuredOn) -> CloudSource {
        CloudSource {
            preset: self.preset.clone(),
            data: self.data.clone(),
            changes: self.set.clone(),
            model: self.model.clone(),
            on,
        }
    }
}

/// Which sets an experiment measures on.
#[derive(Clone, Copy, Debug, Args)]
struct PartArgument {
    /// Sets to measure on
    #[arg(long, value_name = "PART", default_value = "report", value_parser = choice(PARTS))]
    on: MeasuredOn,
}

const PARTS: &[Choice<MeasuredOn>] = &[
    ("report", "sets that no choice has seen", MeasuredOn::Report),
    ("choose", "sets that settings are chosen by: to compare settings", MeasuredOn::Choose),
];

const GENERATION_HELP: &str = "\
One row per law of θ, all with independent draws, one with kernels taken in turn, and the training
sets in the place of samples: a yardstick, which samples may beat. With several splits the model is
trained for each, with a seed of its own, and a row is the mean with half of its 95 % interval over
splits. Chamfer distances are means of squares in the units of the data; for the divergence clouds are
scaled into its ball of radius ½.

Settings are chosen by some sets (`data.held_out`) and reported on others, which no choice has seen: the
test split of a cache, or where there is none as many as settings are chosen by (`data.report`).

Examples:
  ebp reproduce generation
  ebp reproduce generation --preset cloud --data modelnet10/chair.npy --splits 5
  ebp reproduce generation --preset cloud --data modelnet10/chair.npy --split 3   # one of them only
  ebp reproduce generation --preset cloud --data modelnet10/chair.npy --splits 5 --shard 2/4   # of four jobs
  ebp reproduce generation --model runs/reproduce/model --priors kernel";

/// Arguments of `ebp reproduce generation`.
#[derive(Debug, Args)]
#[command(after_help = GENERATION_HELP)]
pub(super) struct GenerationArguments {
    #[command(flatten)]
    clouds: CloudArguments,

    #[command(flatten)]
    part: PartArgument,

    /// How many splits into sets to learn from and to report on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    splits: usize,

    /// Only this split, for a run with `--splits` to find its rows: work for several processes
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    #[arg(conflicts_with_all = ["splits", "model", "share"])]
    split: Option<usize>,

    #[command(flatten)]
    shard: ShareArgument,

    /// Laws of θ to draw from, separated by commas; the flow takes longest to fit
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = choice(PRIORS))]
    #[arg(default_value = "kernel,flow,gaussian,standard")]
    priors: Vec<PriorKind>,
}

impl GenerationArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = GenerationExperiment {
            source: self.clouds.source(self.part.on),
            splits: self.splits,
            split: self.split,
            priors: self.priors.clone(),
        };
        let CloudArguments { common, out, .. } = &self.clouds;
        if let Some(share) = self.shard.share {
            return conduct_share(common, out.clone(), share, |lab, share| {
                experiment.run_share(lab, share)
            });
        }
        conduct(common, out.clone(), "generation", |lab| experiment.run(lab))
    }
}

const DENOISING_HELP: &str = "\
Two protocols on clouds that no choice has seen. `ball` perturbs the points within a radius of a random point and
moves those only; `everywhere` perturbs all points and moves all. Lengths are in the units of the
data. Chamfer distances to the clean clouds are means of squares; `own θ` encodes the noisy cloud
and what becomes of it, `clean θ` is told the clean cloud's code.

Examples:
  ebp reproduce denoising
  ebp reproduce denoising --model runs/reproduce/model --sigma 0.1 --radius 0.2 --sigma-everywhere 0.03";

/// Arguments of `ebp reproduce denoising`.
#[derive(Debug, Args)]
#[command(after_help = DENOISING_HELP)]
pub(super) struct DenoisingArguments {
    #[command(flatten)]
    clouds: CloudArguments,

    #[command(flatten)]
    part: PartArgument,

    /// Noise in the ball
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    sigma: f32,

    /// Radius of the ball
    #[arg(long, value_name = "X", default_value_t = 0.2)]
    radius: f32,

    /// Noise of the other protocol
    #[arg(long, value_name = "X", default_value_t = 0.03)]
    sigma_everywhere: f32,

    /// How far points may move, in units of the noise: larger values forget where they were found
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    reach: f32,

    /// How many steps
    #[arg(long, value_name = "N", default_value_t = 20)]
    steps: usize,

    /// The first step's size, in squared standard deviations of the data
    #[arg(long, value_name = "X", default_value_t = DenoiseSettings::default().step_size)]
    step_size: f32,
}

impl DenoisingArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = DenoisingExperiment {
            source: self.clouds.source(self.part.on),
            sigma: self.sigma,
            radius: self.radius,
            sigma_everywhere: self.sigma_everywhere,
            reach: self.reach,
            steps: self.steps,
            step_size: self.step_size,
        };
        let CloudArguments { common, out, .. } = &self.clouds;
        conduct(common, out.clone(), "denoising", |lab| experiment.run(lab))
    }
}

const ENERGIES_HELP: &str = "\
The energy of a cloud is the mean over its points of log Z(θ) − u(x; θ) at the cloud's own θ: its
negative log density per point in nats of the standardised data. Generated clouds are drawn with
full noise, so that their law is the model's. Noise clouds are uniform on the box of the data.

Examples:
  ebp reproduce energies
  ebp reproduce energies --model runs/reproduce/model";

/// Arguments of `ebp reproduce energies`.
#[derive(Debug, Args)]
#[command(after_help = ENERGIES_HELP)]
pub(super) struct EnergiesArguments {
    #[command(flatten)]
    clouds: CloudArguments,

    #[command(flatten)]
    part: PartArgument,
}

impl EnergiesArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = EnergiesExperiment { source: self.clouds.source(self.part.on) };
        let CloudArguments { common, out, .. } = &self.clouds;
        conduct(common, out.clone(), "energies", |lab| experiment.run(lab))
    }
}

const TABLE1_HELP: &str = "\
A model is trained for each class. `--data` is a folder that holds `airplane`, `chair` and `car` as
folders, files (.npy, .h5, …) or caches of `ebp data import`, which keep ShapeNet's own splits; where it
has no such class, built-in shapes stand in, and only training sets are comparable. Measured are sets
that no choice has seen: the test split of a cache or, with --set data.report_on=validation, its
validation split, which is what the published rows (PointFlow's protocol) are of. The earth mover's
distance is `approxmatch`, as published. Samples and the clouds measured on are written beside the
models.

Examples:
  ebp reproduce table1
  ebp reproduce table1 --preset cloud --data shapenet/ --set data.report_on=validation
  ebp reproduce table1 --preset cloud --data modelnet10/ --set model.augmentation.mirror_axes='[0]'";

/// Arguments of `ebp reproduce table1`.
#[derive(Debug, Args)]
#[command(after_help = TABLE1_HELP)]
pub(super) struct Table1Arguments {
    #[command(flatten)]
    clouds: CloudArguments,

    #[command(flatten)]
    part: PartArgument,

    /// Classes, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "airplane,chair,car")]
    classes: Vec<String>,

    /// Laws of θ to draw from, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = choice(PRIORS))]
    #[arg(default_value = "kernel")]
    priors: Vec<PriorKind>,
}

impl Table1Arguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = Table1Experiment {
            source: self.clouds.source(self.part.on),
            classes: self.classes.clone(),
            priors: self.priors.clone(),
        };
        let CloudArguments { common, out, .. } = &self.clouds;
        conduct(common, out.clone(), "table1", |lab| experiment.run(lab))
    }
}

const TABLE2_HELP: &str = "\
A linear support vector machine (squared hinge, no scaling) learns from the codes of the sets that the
encoder learned from and was chosen by, and is judged on sets that neither has seen: the test split of a
cache, or a fifth of all. C is 1, or chosen by cross-validation of what the machine learns from. The
class of a set is the folder or file it comes from. An untrained encoder of the same shape stands beside
it. The paper learns the encoder from ShapeNet, classifies ModelNet40 and turns shapes about the axis of
gravity: --classify, --turn-axis. That axis must be the same in both: 1 for ShapeNet and ModelNet40's
HDF5, 2 for ModelNet40's meshes and the built-in shapes.

Examples:
  ebp reproduce table2
  ebp reproduce table2 --preset cloud --data modelnet10/ --set model.latent_dim=256
  ebp reproduce table2 --preset cloud --data shapenet/ --classify modelnet40.ebp --turn-axis 1";

/// Arguments of `ebp reproduce table2`.
#[derive(Debug, Args)]
#[command(after_help = TABLE2_HELP)]
pub(super) struct Table2Arguments {
    #[command(flatten)]
    clouds: CloudArguments,

    #[command(flatten)]
    part: PartArgument,

    /// Other clouds than the encoder's to classify
    #[arg(long, value_name = "PATH")]
    classify: Option<PathBuf>,

    /// The axis of gravity, from 0: the encoder learns from shapes turned about it at random, and those
    /// to be classified are turned once each
    #[arg(long, value_name = "AXIS", value_parser = clap::value_parser!(u8).range(..3))]
    turn_axis: Option<u8>,

    /// Folds of the cross-validation that chooses C
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    folds: usize,

    /// Prices of violated margins: numbers, or `auto` to choose it by cross-validation
    #[arg(long, value_name = "C,...", value_delimiter = ',', default_value = "1,auto",
          value_parser = cost)]
    c: Vec<CostArgument>,
}

impl Table2Arguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let costs = self.c.iter().map(|c| match c {
            CostArgument::Fixed(c) => Some(*c),
            CostArgument::Auto => None,
        });
        let experiment = Table2Experiment {
            source: self.clouds.source(self.part.on),
            classified: self.classify.clone(),
            turn_axis: self.turn_axis.map(usize::from),
            folds: self.folds,
            costs: costs.collect(),
        };
        let CloudArguments { common, out, .. } = &self.clouds;
        conduct(common, out.clone(), "table2", |lab| experiment.run(lab))
    }
}

const ABLATION_HELP: &str = "\
Every variant is the preset with a few settings changed, trained for as many steps, and measured on the
sets that settings are chosen by, since variants are compared in order to choose. `samples` come
from a Gaussian fitted to the training codes, points by resampling on a grid with annealed steps,
except in the rows `sampler`, whose points are the learned sampler's own draws.

Examples:
  ebp reproduce ablation
  ebp reproduce ablation --set train.num_steps=1000 --variants importance,ade";

/// Arguments of `ebp reproduce ablation`.
#[derive(Debug, Args)]
#[command(after_help = ABLATION_HELP)]
pub(super) struct AblationArguments {
    #[command(flatten)]
    clouds: CloudArguments,

    /// Only these variants, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    variants: Vec<String>,
}

impl AblationArguments {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let experiment = AblationExperiment {
            source: self.clouds.source(MeasuredOn::Choose),
            variants: self.variants.clone(),
        };
        let CloudArguments { common, out, .. } = &self.clouds;
        conduct(common, out.clone(), "ablation", |lab| experiment.run(lab))
    }
}
