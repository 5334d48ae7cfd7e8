//! New sets from a model.

use super::{CloudModel, Kind, Model, PriorKind};
use crate::Result;
use crate::process::{DrawReport, DrawSettings, DrawTally, num_draw_groups};
use crate::rng::Stream;

/// Points of a cloud unless asked otherwise.
const CLOUD_POINTS: usize = 2048;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct SampleOptions {
    /// How many sets.
    pub count: usize,
    /// Elements of each; `None` is 2048 for clouds, and for energies of whole sets their law of n.
    pub num_points: Option<usize>,
    /// The law of θ.
    pub prior: PriorKind,
    /// θ of every set, `[sets, k]`, in place of `count` draws from the law.
    pub theta: Option<Vec<f32>>,
    /// How points are drawn, once θ is known.
    pub draw: DrawSettings,
    /// All randomness.
    pub stream: Stream,
}

impl Default for SampleOptions {
    /// 16 sets, θ from kernels around the codes of the training sets.
    fn default() -> Self {
        Self {
            count: 16,
            num_points: None,
            prior: PriorKind::Kernel,
            theta: None,
            draw: DrawSettings::default(),
            stream: Stream::new(0, "sample"),
        }
    }
}

/// New sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Each `[n, d]`, in the units of the data.
    pub sets: Vec<Vec<f32>>,
    /// d.
    pub dim: usize,
    /// Where θ came from.
    pub prior: &'static str,
    /// How well points were drawn; nothing of models without a latent.
    pub report: DrawReport,
}

impl Model {
    /// New sets from a model of clouds, an energy of whole sets, BRUNO, a Neural Statistician or a
    /// process with hidden locations.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`](crate::Error::Refused) if it is a model of another kind, otherwise as
    /// [`CloudModel::prior`](super::CloudModel::prior) and
    /// [`CloudModel::draw`](super::CloudModel::draw).
    pub fn sample(&self, options: &SampleOptions) -> Result<Samples> {
        self.sample_watched(options, &mut |_| {})
    }

    /// The same; `watch` is told how many sets are done.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample).
    pub fn sample_watched(
        &self,
        options: &SampleOptions,
        watch: &mut dyn FnMut(usize),
    ) -> Result<Samples> {
        let &SampleOptions { count, num_points, stream, .. } = options;
        if let Kind::SetEnergies(model) = &self.kind {
            let dim = model.dim();
            let sets = match num_points {
                Some(size) => {
                    let drawn = model.sample(count, size, stream)?;
                    drawn.chunks_exact(size * dim).map(<[f32]>::to_vec).collect()
                }
                None => model.sample_any(count, stream)?,
            };
            return Ok(Samples { sets, dim, prior: "no latent", report: DrawReport::default() });
        }
        if let Kind::Latents(model) = &self.kind {
            let dim = model.dim();
            let size = num_points.unwrap_or(model.settings().data.set_size);
            let drawn = model.sample(count, size, stream)?;
            let sets = drawn.chunks_exact(size * dim).map(<[f32]>::to_vec).collect();
            let report = DrawReport::default();
            return Ok(Samples { sets, dim, prior: "the model's own", report });
        }
        let plan = self.sampling(options)?;
        let mut groups = Vec::with_capacity(plan.num_groups());
        for number in 0..plan.num_groups() {
            groups.push(plan.group(number)?);
            watch(groups.iter().map(|group: &SampleGroup| group.sets.len()).sum());
        }
        Ok(plan.samples(groups))
    }

    /// How a model of clouds will draw: θ of every set, and the groups in which points are drawn.
    ///
    /// # Errors
    ///
    /// As [`sample`](Self::sample); models of other kinds draw their sets together.
    pub fn sampling(&self, options: &SampleOptions) -> Result<Sampling<'_>> {
        let model = self.clouds()?;
        let stream = options.stream;
        let (theta, prior) = if let Some(theta) = &options.theta {
            (theta.clone(), "given codes")
        } else {
            let theta = model.prior(options.prior)?.sample(options.count, stream.child(0))?;
            (theta, options.prior.name())
        };
        let num_points = options.num_points.unwrap_or(CLOUD_POINTS);
        Ok(Sampling { model, theta, prior, num_points, draw: options.draw, stream })
    }
}

/// Sets that will be drawn, group by group: no number of a group depends on others.
#[derive(Debug)]
pub struct Sampling<'a> {
    model: &'a CloudModel,
    theta: Vec<f32>,
    prior: &'static str,
    num_points: usize,
    draw: DrawSettings,
    stream: Stream,
}

/// Sets that were drawn together.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleGroup {
    /// Each `[n, d]`, in the units of the data.
    pub sets: Vec<Vec<f32>>,
    /// How well it went.
    pub tally: DrawTally,
}

impl Sampling<'_> {
    /// Where θ came from.
    pub fn prior(&self) -> &'static str {
        self.prior
    }

    /// How many groups there are.
    pub fn num_groups(&self) -> usize {
        num_draw_groups(self.theta.len() / self.model.latent_dim())
    }

    /// Draws group `number`.
    ///
    /// # Errors
    ///
    /// As [`CloudModel::draw`].
    pub fn group(&self, number: usize) -> Result<SampleGroup> {
        let Self { model, theta, num_points, draw, stream, .. } = self;
        let (sets, tally) = model.draw_group(theta, number, *num_points, draw, stream.child(1))?;
        Ok(SampleGroup { sets, tally })
    }

    /// All groups, in their order, as what [`Model::sample`] gives.
    pub fn samples(&self, groups: Vec<SampleGroup>) -> Samples {
        let (sets, tallies): (Vec<_>, Vec<_>) =
            groups.into_iter().map(|group| (group.sets, group.tally)).unzip();
        Samples {
            sets: sets.concat(),
            dim: self.model.dim(),
            prior: self.prior,
            report: DrawReport::of(&tallies, &self.draw),
        }
    }
}
