//! What a training step reads, made ahead on another thread and brought to the device.
//!
//! A batch is a function of the sets, the step's number and its stream; it knows no parameter.

use std::sync::Arc;

use rayon::prelude::*;

use super::step_points::{self, PointPlan, PreparedPoints};
use super::{Energy, EnergyBasedProcess, Parts, PictureParts};
use crate::batch::{SetBatch, TaskBatch, WordCounts};
use crate::energy::{Alphabet, Looks, Observed, SymbolRows, WordRows, WordsEnergy};
use crate::energy::{known_places, push_features, push_grid};
use crate::nn::Step;
use crate::partition::{
    CandidateArrays, CandidateRows, Made, NoisyArrays, NoisyRows, Targets, WriteTargets,
};
use crate::posterior::PosteriorArrays;
use crate::process::Preparer;
use crate::recipe::{EnergyBasedConfig, Estimator, Space, TrainingMode};
use crate::rng::Stream;
use crate::tape::{Array, Choice, Device, DrawDomain, Shape, Tape};
use crate::{Result, SetOffsets};

/// Makes what steps read. It shares no numbers with the process that learns.
#[derive(Clone, Debug)]
pub struct BatchMaker {
    config: EnergyBasedConfig,
    space: Space,
    device: Device,
    parts: Parts,
}

/// What a step reads, on its device.
#[derive(Debug)]
pub struct Batch {
    pub(super) all: PosteriorArrays,
    /// `None` where nothing is given beforehand.
    pub(super) context: Option<PosteriorArrays>,
    pub(super) targets: TargetArrays,
    pub(super) candidates: Option<CandidateArrays>,
    pub(super) noisy: Option<NoisyArrays>,
    /// 1/(sets · n) of every set, n counting all its targets; of bags of words 1/Σn, as in the evidence
    /// of the collection per word.
    pub(super) kl_weights: Array,
}

impl Batch {
    /// The parts that estimators of log Z ask for.
    pub(super) fn made(&self) -> Made<'_> {
        Made {
            targets: &self.targets,
            candidates: self.candidates.as_ref(),
            noisy: self.noisy.as_ref(),
            symbols: self.targets.symbols.as_ref(),
            words: self.targets.words.as_ref().map(|words| (words, &self.kl_weights)),
        }
    }
}

/// The elements whose likelihood is taken.
#[derive(Debug)]
pub(super) struct TargetArrays {
    values: Array,
    dims: usize,
    /// Numbers of the locations that are no function of parameters.
    features: Option<(Array, usize)>,
    pub(super) offsets: Arc<SetOffsets>,
    base: f64,
    pub(super) symbols: Option<SymbolRows>,
    pub(super) words: Option<WordRows>,
    pub(super) picture: Option<PictureTargets>,
}

/// What targets of pictures see.
#[derive(Debug)]
pub(super) struct PictureTargets {
    /// set · places + place of every target.
    pub(super) rows: Arc<Choice>,
    pub(super) looks: Option<Looks>,
    /// What the view reads of every place, of all sets; `None` without a view.
    pub(super) grids: Option<(Array, Shape)>,
    /// 1 for sets whose context targets may see, `[sets]`.
    pub(super) is_seen: Array,
}

impl WriteTargets for TargetArrays {
    /// On a tape, without what is computed from parameters.
    fn write(&self, tape: &mut Tape) -> Result<Targets> {
        let n = self.offsets.num_elements();
        let values = tape.constant(self.values.clone(), (n, self.dims))?;
        let features = match &self.features {
            Some((features, width)) => Some(tape.constant(features.clone(), (n, *width))?),
            None => None,
        };
        let elements = match features {
            Some(features) => tape.concat(&[values, features])?,
            None => values,
        };
        let offsets = Arc::clone(&self.offsets);
        Ok(Targets { values, features, elements, offsets, base: self.base })
    }
}

/// How a batch is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) jitter: f32,
    pub(super) is_training: bool,
    pub(super) num_candidates: usize,
}

/// One set with locations, prepared on the host.
struct PreparedSet {
    values: Vec<f32>,
    features: Vec<f32>,
    places: Vec<usize>,
    seen: Option<Observed>,
    num_targets: usize,
}

impl EnergyBasedProcess {
    /// Makes what steps of this process read.
    pub fn batch_maker(&self) -> BatchMaker {
        BatchMaker {
            config: self.config.clone(),
            space: self.space,
            device: self.device.clone(),
            parts: self.parts.clone(),
        }
    }
}

impl Preparer for BatchMaker {
    type Batch = Batch;

    fn prepare(&self, tasks: &TaskBatch, step: &Step) -> Result<Batch> {
        BatchMaker::prepare(self, tasks, step)
    }
}

impl BatchMaker {
    /// What the step reads of `tasks`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if a set does not fit the process,
    /// [`Error::Device`](crate::Error::Device) if the device fails.
    pub fn prepare(&self, tasks: &TaskBatch, step: &Step) -> Result<Batch> {
        #[expect(clippy::cast_possible_truncation, reason = "noise is f32")]
        let share = step.cosine() as f32;
        let (start, end) = (self.config.jitter, self.config.final_jitter);
        let plan = Plan {
            jitter: end + (start - end) * share,
            is_training: true,
            num_candidates: self.num_candidates(),
        };
        let mut batch = self.make(tasks, plan, step.stream.child(0))?;
        if self.config.head_dropout > 0.0 {
            let width = self.parts.posterior.num_pooled();
            let places = (&self.device, step.stream.child(5));
            batch.all.hide(self.config.head_dropout, width, places)?;
        }
        Ok(batch)
    }

    /// Candidates of the batch; the sampler draws the others.
    fn num_candidates(&self) -> usize {
        let config = &self.config;
        match config.estimator {
            // Sums need none, and the learned sampler draws its own.
            Estimator::Exact | Estimator::Ade => 0,
            estimator => {
                let sampled = config.proposal.num_sampled(config.num_proposals, estimator);
                config.num_proposals - sampled
            }
        }
    }

    pub(super) fn make(&self, tasks: &TaskBatch, plan: Plan, stream: Stream) -> Result<Batch> {
        tasks.check(self.space.location_dim, self.space.value_dim)?;
        if let Energy::Words(energy) = &self.parts.energy {
            self.of_bags(tasks, plan, energy, stream)
        } else if self.space.location_dim == 0 {
            self.of_points(tasks, plan, stream)
        } else {
            self.of_elements(tasks, plan, stream)
        }
    }

    fn posterior_rows(&self, sets: &SetBatch) -> Result<PosteriorArrays> {
        self.parts.posterior.rows(sets)?.upload(&self.device)
    }

    /// The context, unless everything is explained from N(0, I).
    fn given(&self, context: &SetBatch) -> Result<Option<PosteriorArrays>> {
        match self.config.mode {
            TrainingMode::FullSet => Ok(None),
            TrainingMode::Predictive => self.posterior_rows(context).map(Some),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    fn kl_weights(&self, sizes: impl ExactSizeIterator<Item = usize>) -> Result<Array> {
        let sets = sizes.len() as f64;
        let weights = sizes.map(|n| (1.0 / (sets * n as f64)) as f32).collect();
        self.device.upload(weights)
    }

    fn of_points(&self, tasks: &TaskBatch, plan: Plan, stream: Stream) -> Result<Batch> {
        let (sets, dim) = (tasks.num_sets(), self.space.value_dim);
        let is_whole = self.config.mode == TrainingMode::FullSet;
        let joined = if is_whole { Some(tasks.context.union(&tasks.target)?) } else { None };
        let target = joined.as_ref().unwrap_or(&tasks.target);
        let point_plan = PointPlan {
            jitter: plan.jitter,
            is_training: plan.is_training,
            num_candidates: plan.num_candidates,
        };
        let settings = (&self.config, &self.space);
        let prepared: Vec<PreparedPoints> = (0..sets)
            .into_par_iter()
            .map_init(step_points::Memory::default, |memory, set| {
                let context = if is_whole { &[][..] } else { tasks.context.values(set) };
                let stream = stream.child(set as u64);
                step_points::prepare(
                    settings,
                    (context, target.values(set)),
                    point_plan,
                    stream,
                    memory,
                )
            })
            .collect();
        let mut all = SetBatch::new(0, dim);
        prepared.iter().try_for_each(|set| all.push(&[], &set.all))?;
        let all = self.posterior_rows(&all)?;
        let context = if is_whole {
            None
        } else {
            let mut context = SetBatch::new(0, dim);
            prepared.iter().try_for_each(|set| context.push(&[], &set.context))?;
            Some(self.posterior_rows(&context)?)
        };
        let sizes = prepared.iter().map(|set| set.target.len() / dim);
        let offsets = self.device.bring(SetOffsets::from_sizes(sizes)?)?;
        let values = concat(&prepared, |set| &set.target);
        let candidates = if plan.num_candidates > 0 {
            let rows = CandidateRows {
                values: concat(&prepared, |set| &set.candidates),
                log_weights: concat(&prepared, |set| &set.log_weights),
                is_near: prepared
                    .iter()
                    .flat_map(|set| set.is_near.iter().map(|&near| f32::from(u8::from(near))))
                    .collect(),
                count: plan.num_candidates,
            };
            Some(rows.upload(&self.device)?)
        } else {
            None
        };
        // A network over all symbols must read something.
        let ones = vec![1.0; offsets.num_elements()];
        let features = (self.config.estimator == Estimator::Exact).then_some((ones, 1));
        let kl_weights = self.kl_weights((0..sets).map(|set| target.size(set)))?;
        let noisy = self.noisy(&values, stream)?;
        let targets = self.targets(values, features, offsets, None)?;
        Ok(Batch { all, context, targets, candidates, noisy, kl_weights })
    }

    fn of_elements(&self, tasks: &TaskBatch, plan: Plan, stream: Stream) -> Result<Batch> {
        let sets = tasks.num_sets();
        let union = tasks.context.union(&tasks.target)?;
        let target = match self.config.mode {
            TrainingMode::FullSet => &union,
            TrainingMode::Predictive => &tasks.target,
        };
        let choice = stream.child(1);
        let prepared = (0..sets)
            .into_par_iter()
            .map(|set| {
                let stream = choice.child(set as u64);
                self.prepare_set((&tasks.context, target), set, plan, stream)
            })
            .collect::<Result<Vec<_>>>()?;
        let sizes = prepared.iter().map(|set| set.values.len() / self.space.value_dim);
        let offsets = self.device.bring(SetOffsets::from_sizes(sizes)?)?;
        let values = concat(&prepared, |set| &set.values);
        let features = concat(&prepared, |set| &set.features);
        let width = features.len() / offsets.num_elements();
        let picture = match &self.parts.picture {
            Some(picture) => Some(self.picture_targets(picture, &prepared)?),
            None => None,
        };
        let candidates = if plan.num_candidates > 0 {
            let settings = (&self.config, &self.space);
            let stream = stream.child(2);
            let rows = CandidateRows::for_elements(
                settings.0,
                settings.1,
                &values,
                plan.num_candidates,
                stream,
            );
            Some(rows.upload(&self.device)?)
        } else {
            None
        };
        let noisy = self.noisy(&values, stream)?;
        let kl_weights = self.kl_weights(
            prepared.iter().map(|set| set.num_targets).collect::<Vec<_>>().into_iter(),
        )?;
        Ok(Batch {
            all: self.posterior_rows(&union)?,
            context: self.given(&tasks.context)?,
            targets: self.targets(values, Some((features, width)), offsets, picture)?,
            candidates,
            noisy,
            kl_weights,
        })
    }

    /// Bags: the posterior reads some of the words, the likelihood is that of all, or of those beside the
    /// context.
    fn of_bags(
        &self,
        tasks: &TaskBatch,
        plan: Plan,
        energy: &WordsEnergy,
        stream: Stream,
    ) -> Result<Batch> {
        let union = tasks.context.union(&tasks.target)?;
        let is_whole = self.config.mode == TrainingMode::FullSet;
        let target = if is_whole { &union } else { &tasks.target };
        let counted = WordCounts::new(target, energy.num_words)?;
        let given = match self.config.mode {
            TrainingMode::FullSet => None,
            TrainingMode::Predictive => Some(WordCounts::new(&tasks.context, energy.num_words)?),
        };
        let read = if plan.is_training && self.config.hidden_share > 0.0 {
            self.posterior_rows(&self.seen_words(&union, stream.child(4))?)?
        } else {
            self.posterior_rows(&union)?
        };
        let words = WordRows::new(&counted, given.as_ref(), (energy, &self.device))?;
        #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
        let share = (1.0 / target.num_elements() as f64) as f32;
        let values = counted.words.iter().map(|&word| word as f32).collect();
        let targets = self.targets(values, None, Arc::clone(&words.offsets), None)?;
        Ok(Batch {
            all: read,
            context: self.given(&tasks.context)?,
            targets: TargetArrays { words: Some(words), ..targets },
            candidates: None,
            noisy: None,
            kl_weights: self.device.upload(vec![share; tasks.num_sets()])?,
        })
    }

    /// Every set without a random part of its words, of a share that is uniform up to the largest.
    fn seen_words(&self, sets: &SetBatch, stream: Stream) -> Result<SetBatch> {
        let mut seen = SetBatch::new(0, 1);
        for set in 0..sets.num_sets() {
            let values = sets.values(set);
            let mut uniforms = vec![0.0_f32; values.len() + 1];
            stream.child(set as u64).fill_uniform(0, 0, &mut uniforms);
            let hidden = f64::from(uniforms[values.len()]) * self.config.hidden_share;
            let kept = values.iter().zip(&uniforms).filter(|(_, u)| f64::from(**u) >= hidden);
            seen.push(&[], &kept.map(|(value, _)| *value).collect::<Vec<f32>>())?;
        }
        Ok(seen)
    }

    fn noisy(&self, values: &[f32], stream: Stream) -> Result<Option<NoisyArrays>> {
        if self.config.estimator != Estimator::ScoreMatching {
            return Ok(None);
        }
        let dims = self.space.value_dim;
        let rows = NoisyRows::new(&self.config, values, dims, stream.child(3));
        rows.upload(&self.device).map(Some)
    }

    /// A random part of a set's targets, and what they see of its context.
    fn prepare_set(
        &self,
        (context, target): (&SetBatch, &SetBatch),
        set: usize,
        plan: Plan,
        stream: Stream,
    ) -> Result<PreparedSet> {
        let (config, space) = (&self.config, &self.space);
        let (dx, dt) = (space.value_dim, space.location_dim);
        let n = target.size(set);
        let mut order = stream.permutation(n);
        if config.likelihood_points > 0 && plan.is_training {
            order.truncate(config.likelihood_points);
        }
        let (mut values, mut locations) = (Vec::new(), Vec::new());
        for &index in &order {
            values.extend_from_slice(&target.values(set)[index * dx..][..dx]);
            locations.extend_from_slice(&target.locations(set)[index * dt..][..dt]);
        }
        let (features, places, seen) =
            if let Some(PictureParts { surroundings, .. }) = &self.parts.picture {
                let mut uniform = [0.0];
                stream.child(0).fill_uniform(0, 0, &mut uniform);
                let is_blind = config.mode == TrainingMode::FullSet
                    || (plan.is_training && f64::from(uniform[0]) < config.blind);
                let (grid, channels) = (surroundings.grid, surroundings.channels);
                let seen = if is_blind {
                    Observed::nothing(grid, channels)
                } else {
                    Observed::new(grid, channels, context.locations(set), context.values(set))?
                };
                let places = known_places(grid, &locations)?;
                (surroundings.rows(&seen, &places), places, Some(seen))
            } else {
                let mut features = Vec::new();
                for location in locations.chunks_exact(dt) {
                    push_features(location, config.location_frequencies, &mut features);
                }
                (features, Vec::new(), None)
            };
        if space.grid.is_some() && config.estimator != Estimator::Exact {
            dequantise(&mut values, (config, space), stream.child(1))?;
        }
        Ok(PreparedSet { values, features, places, seen, num_targets: n })
    }

    fn picture_targets(
        &self,
        picture: &PictureParts,
        prepared: &[PreparedSet],
    ) -> Result<PictureTargets> {
        let num_places = picture.surroundings.grid.num_places();
        let rows = prepared.iter().enumerate().flat_map(|(set, prepared)| {
            let first = set * num_places;
            prepared.places.iter().map(move |p| u32::try_from(first + p).unwrap_or(u32::MAX))
        });
        let rows = Choice::new(prepared.len() * num_places, rows.collect())?;
        let seen: Vec<&Observed> = prepared.iter().filter_map(|set| set.seen.as_ref()).collect();
        let looks = match &picture.attention {
            Some(attention) => {
                let places: Vec<&[usize]> = prepared.iter().map(|set| &set.places[..]).collect();
                Some(attention.looks(&seen, &places, &self.device)?)
            }
            None => None,
        };
        let grids = match &picture.view {
            Some(_) => Some(grid_rows(&seen, &self.device)?),
            None => None,
        };
        let is_seen = seen.iter().map(|seen| f32::from(u8::from(!seen.is_nothing()))).collect();
        let (rows, is_seen) = (self.device.bring(rows)?, self.device.upload(is_seen)?);
        Ok(PictureTargets { rows, looks, grids, is_seen })
    }

    fn targets(
        &self,
        values: Vec<f32>,
        features: Option<(Vec<f32>, usize)>,
        offsets: Arc<SetOffsets>,
        picture: Option<PictureTargets>,
    ) -> Result<TargetArrays> {
        let dims = self.space.value_dim;
        let symbols = match &self.parts.energy {
            Energy::Levels(levels) => Some(levels.symbol_rows(&values, &self.device)?),
            Energy::Element(_) | Energy::Words(_) => None,
        };
        let base = self.base(&values, &offsets);
        let features = match features {
            Some((features, width)) => Some((self.device.upload(features)?, width)),
            None => None,
        };
        let values = self.device.upload(values)?;
        Ok(TargetArrays { values, dims, features, offsets, base, symbols, words: None, picture })
    }

    /// Mean over sets of the mean of the base measure.
    fn base(&self, values: &[f32], offsets: &SetOffsets) -> f64 {
        let Some(std_dev) = self.config.base() else { return 0.0 };
        let space = &self.space;
        let domain = DrawDomain { low: space.low, high: space.high, base_std_dev: Some(std_dev) };
        let d = space.value_dim;
        let mean = |set: usize| {
            let range = offsets.range(set);
            let points = values[range.start * d..range.end * d].chunks_exact(d);
            points.map(|x| f64::from(domain.base(x))).sum::<f64>() / range.len() as f64
        };
        (0..offsets.num_sets()).map(mean).sum::<f64>() / offsets.num_sets() as f64
    }
}

/// Numbers of a finite alphabet, each drawn anew anywhere in its own cell: a density may not rise at
/// the middles of cells, and numbers that were spread before do not leak into the next cell.
fn dequantise(
    values: &mut [f32],
    (config, space): (&EnergyBasedConfig, &Space),
    stream: Stream,
) -> Result<()> {
    let mut within = vec![0.0; values.len()];
    stream.fill_uniform(0, 0, &mut within);
    let alphabet = Alphabet::new(config, space);
    for (value, within) in values.iter_mut().zip(within) {
        let symbol = alphabet.symbol(f64::from(*value))?;
        *value = alphabet.spread(symbol, within);
    }
    Ok(())
}

/// What the view reads of contexts, on the device.
pub(super) fn grid_rows(seen: &[&Observed], device: &Device) -> Result<(Array, Shape)> {
    let mut rows = Vec::new();
    for seen in seen {
        push_grid(seen, &mut rows);
    }
    let places: usize = seen.iter().map(|seen| seen.is_known.len()).sum();
    let columns = rows.len() / places.max(1);
    Ok((device.upload(rows)?, (places, columns)))
}

fn concat<S, T: Clone>(sets: &[S], part: impl Fn(&S) -> &Vec<T>) -> Vec<T> {
    let mut all = Vec::with_capacity(sets.iter().map(|set| part(set).len()).sum());
    for set in sets {
        all.extend_from_slice(part(set));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was spread within a cell before is spread within the same cell again.
    #[test]
    fn pixels_that_were_spread_keep_their_levels() {
        let config = EnergyBasedConfig { levels: 8, ..EnergyBasedConfig::default() };
        let space = Space::regression(2, 1, (-1.0, 1.0));
        let alphabet = Alphabet::new(&config, &space);
        let before: Vec<f32> = (0..800_u16).map(|i| f32::from(i) / 400.0 - 1.0).collect();
        let mut values = before.clone();
        dequantise(&mut values, (&config, &space), Stream::new(1, "pixels")).unwrap();
        assert_ne!(values, before);
        let mut places = [0.0_f64; 2];
        for (old, new) in before.iter().zip(&values) {
            let symbol = alphabet.symbol(f64::from(*old)).unwrap();
            assert_eq!(symbol, alphabet.symbol(f64::from(*new)).unwrap(), "{old} {new}");
            let within = (f64::from(*new) + 1.0) / 0.25 - f64::from(symbol);
            places[0] += within / 800.0;
            places[1] += within.powi(2) / 800.0;
        }
        // Uniform on [0, 1): mean 1/2 and mean square 1/3, standard deviations 0.289 and 0.298.
        assert!((places[0] - 0.5).abs() < 4.0 * 0.289 / 800_f64.sqrt());
        assert!((places[1] - 1.0 / 3.0).abs() < 4.0 * 0.298 / 800_f64.sqrt());
    }
}
