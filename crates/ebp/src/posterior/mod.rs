//! q(θ | set): elements to a vector, the vector to a diagonal Gaussian.
//!
//! ```text
//! h = [pool(elements), log n],    (μ, log σ) = ρ(h),    nothing known: μ = 0, σ = 1
//! ```
//!
//! `deep_sets` pools a network over elements, `table` sums a vector per place of a grid, `grid` has
//! convolutions over its places, `counts` sums a vector per word of a vocabulary; `codes` is a second level of the latent, given θ. Nothing here knows the
//! order of the elements.

mod codes;
mod counts;
mod deep_sets;
mod grid;
mod table;

use std::sync::Arc;

use crate::batch::SetBatch;
use crate::nn::{Dense, DenseConfig, Initialiser, Size};
use crate::recipe::{EnergyBasedConfig, PosteriorForm, Space};
use crate::rng::Stream;
use crate::tape::{Array, Choice, Device, Gaussian, Group, Tape, Var};
use crate::{Error, Result, SetOffsets};

pub(crate) use self::codes::LocalPosterior;
use self::counts::Counts;
use self::deep_sets::DeepSets;
use self::grid::GridPosterior;
use self::table::Table;

/// log σ is never larger.
const MOST_LOG_STD_DEV: f32 = 2.0;
/// Subtracted from log n, so that the usual sizes are of the order of one.
const USUAL_LOG_SIZE: f32 = 4.0;

/// q(θ | set).
#[derive(Clone, Debug)]
pub(crate) struct Posterior {
    elements: Elements,
    head: Dense,
    latent_dim: usize,
    num_pooled: usize,
    sees_size: bool,
    first_log_std_dev: f64,
    least_log_std_dev: f32,
}

#[derive(Clone, Debug)]
enum Elements {
    DeepSets(DeepSets),
    Table(Table),
    Grid(GridPosterior),
    Counts(Counts),
}

/// Sets as the posterior reads them, on the host.
#[derive(Debug)]
pub(crate) struct PosteriorRows {
    pub(crate) rows: Vec<f32>,
    pub(crate) columns: usize,
    pub(crate) offsets: SetOffsets,
    /// log n of every set.
    pub(crate) sizes: Vec<f32>,
    /// 1 for sets with elements, 0 for the others.
    pub(crate) is_told: Vec<f32>,
    /// The word of every row, where rows are words of a vocabulary.
    pub(crate) words: Option<Choice>,
}

/// The same on a device.
#[derive(Clone, Debug)]
pub(crate) struct PosteriorArrays {
    rows: Array,
    columns: usize,
    offsets: Arc<SetOffsets>,
    sizes: Array,
    is_told: Array,
    /// Whether no set is empty.
    are_all_told: bool,
    words: Option<Arc<Choice>>,
    /// What the head's inputs are multiplied by, `[sets, num_pooled]`.
    mask: Option<Array>,
}

impl PosteriorRows {
    /// Sets as rows of elements; a set without elements has one that nobody looks at.
    pub(crate) fn new(rows: Vec<f32>, sizes: &[usize], columns: usize) -> Result<Self> {
        Ok(Self {
            rows,
            columns,
            offsets: SetOffsets::from_sizes(sizes.iter().map(|&size| size.max(1)))?,
            sizes: sizes.iter().map(|&size| (size.max(1) as f32).ln() - USUAL_LOG_SIZE).collect(),
            is_told: sizes.iter().map(|&size| f32::from(u8::from(size > 0))).collect(),
            words: None,
        })
    }

    pub(crate) fn upload(self, device: &Device) -> Result<PosteriorArrays> {
        Ok(PosteriorArrays {
            are_all_told: self.is_told.iter().all(|&told| told > 0.0),
            rows: device.upload(self.rows)?,
            columns: self.columns,
            offsets: device.bring(self.offsets)?,
            sizes: device.upload(self.sizes)?,
            is_told: device.upload(self.is_told)?,
            words: match self.words {
                Some(words) => Some(device.bring(words)?),
                None => None,
            },
            mask: None,
        })
    }
}

impl PosteriorArrays {
    fn num_sets(&self) -> usize {
        self.sizes.len()
    }

    /// Hides a share of what the head reads in this step, `width` numbers of every set, and makes the
    /// rest as much larger.
    pub(crate) fn hide(
        &mut self,
        share: f64,
        width: usize,
        (device, stream): (&Device, Stream),
    ) -> Result<()> {
        let mut mask = vec![0.0_f32; self.num_sets() * width];
        stream.fill_uniform(0, 0, &mut mask);
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let kept = (1.0 / (1.0 - share)) as f32;
        for m in &mut mask {
            *m = if f64::from(*m) < share { 0.0 } else { kept };
        }
        self.mask = Some(device.upload(mask)?);
        Ok(())
    }

    /// 1 or 0 for every set, `[sets, 1]`.
    fn told(&self, tape: &mut Tape) -> Result<Var> {
        tape.constant(self.is_told.clone(), (self.num_sets(), 1))
    }
}

/// What the posterior found in sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The pooled features, before the activation, `[sets, width]`: a representation of the set.
    pub(crate) features: Var,
    /// What the head reads, 0 for empty sets, `[sets, num_pooled]`.
    pub(crate) pooled: Var,
    /// The same of every cell of the posterior `grid`, `[sets · cells, width]`.
    pub(crate) cells: Option<Var>,
    /// q(θ | set).
    pub(crate) law: Gaussian,
}

impl Posterior {
    pub(crate) fn new(
        config: &EnergyBasedConfig,
        space: &Space,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let elements = match (config.posterior, space.grid, space.num_words) {
            (PosteriorForm::Table, Some(grid), _) => {
                Elements::Table(Table::new(config, space, grid, group)?)
            }
            (PosteriorForm::Grid, Some(grid), _) => {
                Elements::Grid(GridPosterior::new(config, space, grid, group)?)
            }
            (PosteriorForm::Counts, _, Some(num_words)) => {
                Elements::Counts(Counts::new(config, num_words, group)?)
            }
            _ => Elements::DeepSets(DeepSets::new(config, space, group)?),
        };
        let width = match &elements {
            Elements::Table(table) => table.width(),
            Elements::Grid(grid) => grid.width(),
            Elements::DeepSets(network) => network.width(),
            Elements::Counts(counts) => counts.width(),
        };
        let num_pooled = width + usize::from(config.sees_size);
        let head = DenseConfig {
            inputs: num_pooled,
            hidden: &config.head_widths,
            outputs: 2 * config.latent_dim,
            activation: config.head_activation,
            weights: Initialiser::FanIn,
            output_scale: 1.0,
        };
        Ok(Self {
            elements,
            head: Dense::new(group, "head", &head)?,
            latent_dim: config.latent_dim,
            num_pooled,
            sees_size: config.sees_size,
            first_log_std_dev: config.first_log_std_dev,
            least_log_std_dev: config.least_log_std_dev,
        })
    }

    /// Numbers of [`Reading::pooled`].
    pub(crate) fn num_pooled(&self) -> usize {
        self.num_pooled
    }

    /// Columns and rows of the cells that the second level of the latent has codes for, and what is known
    /// of each of them if the posterior tells them apart.
    pub(crate) fn cells(&self, config: &EnergyBasedConfig) -> (Size, Option<usize>) {
        match &self.elements {
            Elements::Grid(grid) => (grid.cells, Some(grid.width())),
            _ => ((config.local_side, config.local_side), None),
        }
    }

    /// Sets as rows.
    pub(crate) fn rows(&self, sets: &SetBatch) -> Result<PosteriorRows> {
        match &self.elements {
            Elements::Table(table) => table.rows(sets),
            Elements::Grid(grid) => grid.rows(sets),
            Elements::DeepSets(network) => network.rows(sets),
            Elements::Counts(counts) => counts.rows(sets),
        }
    }

    /// q(θ | set) of every set.
    pub(crate) fn read(&self, tape: &mut Tape, sets: &PosteriorArrays) -> Result<Reading> {
        let count = sets.num_sets();
        let rows =
            tape.constant(sets.rows.clone(), (sets.rows.len() / sets.columns, sets.columns))?;
        let mut cells = None;
        let (features, active) = match &self.elements {
            Elements::Table(table) => table.read(tape, rows)?,
            Elements::Grid(grid) => {
                let (mean, found) = grid.read(tape, rows)?;
                cells = Some(found);
                (mean, mean)
            }
            Elements::DeepSets(network) => network.read(tape, rows, &sets.offsets)?,
            Elements::Counts(counts) => {
                let Some(words) = &sets.words else {
                    return Err(Error::invalid("rows", "words of a vocabulary", "others"));
                };
                counts.read(tape, rows, (words, &sets.offsets))?
            }
        };
        let mut pooled = active;
        if self.sees_size {
            let sizes = tape.constant(sets.sizes.clone(), (count, 1))?;
            pooled = tape.concat(&[active, sizes])?;
        }
        let mut read = pooled;
        if let Some(mask) = &sets.mask {
            let mask = tape.constant(mask.clone(), (count, self.num_pooled))?;
            read = tape.multiply(pooled, mask)?;
        }
        let out = self.head.forward(tape, read)?;
        let k = self.latent_dim;
        let mut mean = tape.columns(out, 0, k)?;
        let mut log_std_dev = tape.columns(out, k, k)?;
        if self.first_log_std_dev != 0.0 {
            log_std_dev = tape.affine(log_std_dev, 1.0, self.first_log_std_dev)?;
        }
        if !sets.are_all_told {
            let told = sets.told(tape)?;
            (mean, log_std_dev) = (tape.multiply(mean, told)?, tape.multiply(log_std_dev, told)?);
            pooled = tape.multiply(pooled, told)?;
            if let Some(known) = cells {
                let offsets = SetOffsets::uniform(count, tape.shape(known).0 / count)?;
                let told = tape.spread(told, &Arc::new(offsets))?;
                cells = Some(tape.multiply(known, told)?);
            }
        }
        // A spike or a plain would stop all learning.
        let log_std_dev = tape.clamp(log_std_dev, self.least_log_std_dev, MOST_LOG_STD_DEV)?;
        Ok(Reading { features, pooled, cells, law: Gaussian { mean, log_std_dev } })
    }
}

/// σ of the second level: the same limits.
pub(super) fn clamp_log_std_dev(tape: &mut Tape, log_std_dev: Var, least: f32) -> Result<Var> {
    tape.clamp(log_std_dev, least, MOST_LOG_STD_DEV)
}
