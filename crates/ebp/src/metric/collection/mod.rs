//! How far a collection of generated sets is from a collection of real ones.
//!
//! With samples S and references R, a distance d between sets, and the nearest neighbour by d:
//!
//! ```text
//! minimum matching distance  mean over r in R of min over s in S of d(r, s)       quality, lower is better
//! coverage                   share of R that is nearest to at least one s         diversity, higher is better
//! 1-NN accuracy              share of S ∪ R whose nearest other set is of its own kind   ½ is ideal
//! Jensen–Shannon divergence  of all points of S and of all points of R on a grid  lower is better
//! ```
//!
//! The first three are computed by Chamfer and by any earth mover's distance. A neighbour at equal
//! distance on both sides counts half for the accuracy. Each number has an interval ([`Estimate`]).
//! None of them sees whether samples are copies of training data, and a collection of real sets
//! does not reach the ideal values either: compare with a subset of the training data in the place
//! of samples. That row is a yardstick, not a bound: samples that follow the law more evenly than so
//! many real sets do can be better. Accuracies of the two kinds differ where one is more crowded than
//! the other, and their mean can hide it: both are given.
//!
//! Pairs that were computed can be kept in a folder, and a run that was killed goes on from there. They
//! can be cut into shares for several processes ([`compute_share`], [`evaluate_parts`]).

pub(in crate::metric) mod bootstrap;
mod jensen_shannon;
mod neighbours;
mod pairs;
mod prepare;
mod projection;
mod share;
mod store;

use std::path::{Path, PathBuf};

use crate::rng::Stream;
use crate::{Error, Result, Share};

use super::distance::{ArrangedCloud, ChamferConvention, EmdMethod, GpuDistances};

pub use self::bootstrap::Estimate;
pub use self::jensen_shannon::GridDivergence;
pub use self::neighbours::PairCounts;
use self::neighbours::{Neighbours, Search, search};
use self::pairs::{Kept, Measure, Pairs};
pub use self::prepare::{Collection, Preparation, SetNormalisation};
use self::share::{Memory, all_have, bounds_name, own_records, together};
use self::store::{Known, PairStore, Record, hash};

/// The convention of the Chamfer distance between sets of collections.
pub const CHAMFER: ChamferConvention = ChamferConvention::MeanOfSquares;

/// Called with the number of pairs that are done and of all pairs.
type Watch<'a> = &'a mut dyn FnMut(usize, usize);

/// What to compute, and where to keep it.
#[derive(Clone, Copy, Debug)]
pub struct CollectionOptions<'a> {
    /// The method of the earth mover's distance, `None` for Chamfer only.
    pub emd: Option<EmdMethod>,
    /// The folder for distances of pairs, `None` to keep nothing.
    pub cache: Option<&'a Path>,
    /// Seed of the intervals.
    pub seed: u64,
}

/// Where an evaluation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionProgress {
    /// `chamfer` or the name of the earth mover's method.
    pub distance: &'static str,
    /// Pairs that need no more work.
    pub num_done: usize,
    /// All pairs.
    pub num_pairs: usize,
}

/// The metrics by one distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeighbourMetrics {
    /// Mean over references of the distance to the nearest sample.
    pub matching_distance: Estimate,
    /// Share of references that are nearest to at least one sample.
    pub coverage: Estimate,
    /// Share of sets whose nearest other set is of their own kind.
    pub one_nn_accuracy: Estimate,
    /// The same of the samples alone: above ½ where they crowd together.
    pub sample_accuracy: Estimate,
    /// The same of the references alone: above ½ where samples keep away from them.
    pub reference_accuracy: Estimate,
}

/// The metrics by an earth mover's distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmdMetrics {
    /// How distances were computed.
    pub method: EmdMethod,
    /// The metrics.
    pub metrics: NeighbourMetrics,
    /// The largest relative gap of all distances that were computed; `None` where the method has
    /// none.
    pub largest_gap: Option<f64>,
    /// How many pairs were computed.
    pub pairs: PairCounts,
}

/// All metrics of two collections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectionMetrics {
    /// `None` unless points have three coordinates.
    pub divergence: Option<GridDivergence>,
    /// By Chamfer distance, mean of squares.
    pub chamfer: NeighbourMetrics,
    /// By earth mover's distance, if asked for.
    pub emd: Option<EmdMetrics>,
}

/// Compares `samples` with `references`. `watch` is told how far it is.
///
/// ```
/// use ebp::metric::collection::{CollectionOptions, evaluate};
/// use ebp::metric::distance::{ArrangedCloud, EmdMethod};
///
/// let cloud = |shift: f64| ArrangedCloud::new(1, &[shift, shift + 1.0]);
/// let samples = [cloud(0.0)?, cloud(0.1)?];
/// let references = [cloud(0.2)?, cloud(5.0)?];
/// let options = CollectionOptions { emd: Some(EmdMethod::Exact), cache: None, seed: 0 };
/// let metrics = evaluate(&samples, &references, &options, &mut |_| ())?;
/// // Both samples are nearest to the first reference; 0.1 and 4.9 are the distances to samples.
/// let emd = metrics.emd.unwrap().metrics;
/// assert_eq!(emd.coverage.value, 0.5);
/// assert!((emd.matching_distance.value - 2.5).abs() < 1e-12);
/// # Ok::<(), ebp::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::InvalidValue`] if a collection is empty or dimensions differ, [`Error::Io`] and
/// [`Error::Damaged`] if the cache cannot be used.
pub fn evaluate(
    samples: &[ArrangedCloud],
    references: &[ArrangedCloud],
    options: &CollectionOptions<'_>,
    watch: &mut dyn FnMut(CollectionProgress),
) -> Result<CollectionMetrics> {
    evaluate_on(None, samples, references, options, watch)
}

/// [`evaluate`] with a GPU for what it is good at: Chamfer, which stays the same to the last bit,
/// and the soft matchings. `None` is the CPU alone.
///
/// # Errors
///
/// As [`evaluate`], and [`Error::Device`] if the GPU fails.
pub fn evaluate_on(
    gpu: Option<GpuDistances<'_>>,
    samples: &[ArrangedCloud],
    references: &[ArrangedCloud],
    options: &CollectionOptions<'_>,
    watch: &mut dyn FnMut(CollectionProgress),
) -> Result<CollectionMetrics> {
    let work = Work::new(gpu, samples, references)?;
    work.evaluate(options, &Origin::Cache(options.cache), watch)
}

/// Computes a share of the distances that [`evaluate_on`] needs, and keeps them in `folder`: killed, it
/// goes on from there. Earlier distances are not looked for in `options.cache`.
///
/// # Errors
///
/// As [`evaluate_on`].
pub fn compute_share(
    gpu: Option<GpuDistances<'_>>,
    (samples, references): (&[ArrangedCloud], &[ArrangedCloud]),
    options: &CollectionOptions<'_>,
    (share, folder): (Share, &Path),
    watch: &mut dyn FnMut(CollectionProgress),
) -> Result<()> {
    Work::new(gpu, samples, references)?.share(options, share, folder, watch)
}

/// What [`evaluate_on`] finds, to the last bit, from the `parts` that [`compute_share`] kept of all
/// shares.
///
/// # Errors
///
/// As [`evaluate_on`]; [`Error::Refused`] if a part is not of these sets, [`Error::Damaged`] if one of its
/// files is.
pub fn evaluate_parts(
    (samples, references): (&[ArrangedCloud], &[ArrangedCloud]),
    options: &CollectionOptions<'_>,
    parts: &[PathBuf],
    watch: &mut dyn FnMut(CollectionProgress),
) -> Result<CollectionMetrics> {
    Work::new(None, samples, references)?.evaluate(options, &Origin::Parts(parts), watch)
}

/// Where distances are that need no computing.
enum Origin<'a> {
    Cache(Option<&'a Path>),
    Parts(&'a [PathBuf]),
}

/// Two collections, one after the other.
struct Work<'a> {
    gpu: Option<GpuDistances<'a>>,
    samples: &'a [ArrangedCloud],
    references: &'a [ArrangedCloud],
    clouds: Vec<&'a ArrangedCloud>,
    fingerprint: u64,
}

impl<'a> Work<'a> {
    fn new(
        gpu: Option<GpuDistances<'a>>,
        samples: &'a [ArrangedCloud],
        references: &'a [ArrangedCloud],
    ) -> Result<Self> {
        check(samples, references)?;
        let clouds: Vec<&ArrangedCloud> = samples.iter().chain(references).collect();
        let fingerprint = fingerprint(&clouds);
        Ok(Self { gpu, samples, references, clouds, fingerprint })
    }

    /// The store of `name` in a folder, and what it holds.
    fn open(&self, folder: &Path, name: &str) -> Result<(PairStore, Vec<Record>)> {
        PairStore::open(folder, name, self.fingerprint)
    }

    fn kept(&self, origin: &Origin<'_>, name: &str) -> Result<Kept> {
        let (store, records) = match origin {
            Origin::Cache(None) => (None, Vec::new()),
            Origin::Cache(Some(folder)) => {
                let (store, records) = self.open(folder, name)?;
                (Some(store), records)
            }
            Origin::Parts(parts) => {
                let pairs = together(parts, name, self.fingerprint, self.clouds.len())?;
                return Ok(Kept { pairs, store: None });
            }
        };
        Ok(Kept { pairs: Pairs::new(self.clouds.len(), &records), store })
    }

    /// The store of a method: that of the parts, if there are parts, otherwise that of this device.
    fn store_name(&self, origin: &Origin<'_>, method: EmdMethod) -> Result<String> {
        let is_on_gpu = Measure::Emd(method).gpu(self.gpu, &self.clouds).is_some();
        let Origin::Parts(parts) = origin else { return Ok(store_name(method, is_on_gpu)) };
        let (here, elsewhere) = (store_name(method, is_on_gpu), store_name(method, !is_on_gpu));
        let is_elsewhere = elsewhere != here && all_have(parts, &elsewhere, self.fingerprint)?;
        Ok(if is_elsewhere { elsewhere } else { here })
    }

    fn evaluate(
        &self,
        options: &CollectionOptions<'_>,
        origin: &Origin<'_>,
        watch: &mut dyn FnMut(CollectionProgress),
    ) -> Result<CollectionMetrics> {
        let (clouds, num_samples) = (&self.clouds[..], self.samples.len());
        let stream = Stream::new(options.seed, "bootstrap");
        let all = || Pairs::all(clouds.len());
        let mut chamfer_kept = self.kept(origin, CHAMFER_STORE)?;
        chamfer_kept.fill(
            clouds,
            all(),
            Measure::Chamfer,
            self.gpu,
            &mut |num_done, num_pairs| {
                watch(CollectionProgress { distance: "chamfer", num_done, num_pairs });
            },
        )?;
        let summary = |neighbours: &Neighbours| summarise(neighbours, num_samples, stream);
        let nearest = |pairs: &Pairs| Neighbours::new(pairs, clouds.len(), num_samples);
        let chamfer = summary(&nearest(&chamfer_kept.pairs));
        let emd = match options.emd {
            None => None,
            Some(method) => {
                let name = self.store_name(origin, method)?;
                let mut kept = self.kept(origin, &name)?;
                let mut watch = |num_done, num_pairs| {
                    watch(CollectionProgress { distance: method.name(), num_done, num_pairs });
                };
                let (neighbours, counts) = if method.is_exact() {
                    let nothing = Pairs::new(clouds.len(), &[]);
                    let known = std::mem::replace(&mut kept.pairs, nothing);
                    let memory = match origin {
                        Origin::Cache(_) => Memory::of_same(known),
                        Origin::Parts(parts) => {
                            let name = bounds_name(&name);
                            let highest = together(parts, &name, self.fingerprint, clouds.len())?;
                            Memory::of_others(known, highest)
                        }
                    };
                    let bounds = &chamfer_kept.pairs;
                    let wanted = Search { clouds, num_samples, bounds, share: None, highest: None };
                    search(wanted, &memory, &mut kept, &mut watch)?
                } else {
                    kept.fill(clouds, all(), Measure::Emd(method), self.gpu, &mut watch)?;
                    let all = kept.pairs.len();
                    let counts = PairCounts { all, solved: all, ..PairCounts::default() };
                    (nearest(&kept.pairs), counts)
                };
                let largest_gap = largest_gap(method, &kept.pairs, clouds.len());
                let metrics = summary(&neighbours);
                Some(EmdMetrics { method, metrics, largest_gap, pairs: counts })
            }
        };
        let stream = stream.child(DIVERGENCE);
        let divergence = jensen_shannon::jensen_shannon(self.samples, self.references, stream);
        Ok(CollectionMetrics { divergence, chamfer, emd })
    }

    fn share(
        &self,
        options: &CollectionOptions<'_>,
        share: Share,
        folder: &Path,
        watch: &mut dyn FnMut(CollectionProgress),
    ) -> Result<()> {
        let (clouds, num_samples) = (&self.clouds[..], self.samples.len());
        let is_exact = options.emd.is_some_and(EmdMethod::is_exact);
        let by_turns = || Pairs::all(clouds.len()).enumerate().filter(|(n, _)| share.has(*n));
        let by_turns = || by_turns().map(|(_, pair)| pair);
        // The search needs a bound of every pair of its clouds.
        let wanted: Vec<(usize, usize)> = if is_exact {
            Pairs::all(clouds.len()).filter(|&(i, j)| share.has(i) || share.has(j)).collect()
        } else {
            by_turns().collect()
        };
        let origin = Origin::Cache(Some(folder));
        let mut chamfer = self.kept(&origin, CHAMFER_STORE)?;
        let wanted = wanted.into_iter();
        chamfer.fill(clouds, wanted, Measure::Chamfer, self.gpu, &mut |num_done, num_pairs| {
            watch(CollectionProgress { distance: "chamfer", num_done, num_pairs });
        })?;
        let Some(method) = options.emd else { return Ok(()) };
        let mut watch = |num_done, num_pairs| {
            watch(CollectionProgress { distance: method.name(), num_done, num_pairs });
        };
        let name = self.store_name(&origin, method)?;
        if !is_exact {
            let mut kept = self.kept(&origin, &name)?;
            return kept.fill(clouds, by_turns(), Measure::Emd(method), self.gpu, &mut watch);
        }
        let (store, records) = self.open(folder, &name)?;
        let (highest, bounds) = self.open(folder, &bounds_name(&name))?;
        let records = own_records(records, &bounds, clouds.len());
        let memory = Memory::of_same(Pairs::new(clouds.len(), &records));
        let mut kept = Kept { pairs: Pairs::new(clouds.len(), &[]), store: Some(store) };
        let bounds = &chamfer.pairs;
        let (share, highest) = (Some(share), Some(highest));
        let wanted = Search { clouds, num_samples, bounds, share, highest };
        search(wanted, &memory, &mut kept, &mut watch).map(|_| ())
    }
}

/// The name of the store of Chamfer distances.
const CHAMFER_STORE: &str = "chamfer";

/// Numbers of the child streams.
const DISTANCE: u64 = 0;
const COVERAGE: u64 = 1;
const ACCURACY: u64 = 2;
const DIVERGENCE: u64 = 3;
const SAMPLE_ACCURACY: u64 = 4;
const REFERENCE_ACCURACY: u64 = 5;

fn check(samples: &[ArrangedCloud], references: &[ArrangedCloud]) -> Result<()> {
    for (field, collection) in [("samples", samples), ("references", references)] {
        if collection.is_empty() {
            return Err(Error::invalid(field, "at least one set", "none"));
        }
    }
    let dim = samples[0].dim();
    match samples.iter().chain(references).position(|cloud| cloud.dim() != dim) {
        None => Ok(()),
        Some(index) => {
            let found = samples.iter().chain(references).nth(index).map_or(0, ArrangedCloud::dim);
            let expected = format!("points of {dim} coordinates, as the first has");
            Err(Error::invalid(format!("set {index}"), expected, format!("{found} coordinates")))
        }
    }
}

/// A name for the points of two collections in their order.
pub fn fingerprint_of(samples: &[ArrangedCloud], references: &[ArrangedCloud]) -> u64 {
    fingerprint(&samples.iter().chain(references).collect::<Vec<_>>())
}

fn fingerprint(clouds: &[&ArrangedCloud]) -> u64 {
    let size = |cloud: &ArrangedCloud| [cloud.len() as u64, cloud.dim() as u64];
    let bits = clouds.iter().flat_map(|cloud| {
        size(cloud).into_iter().chain(cloud.points().iter().map(|x| x.to_bits()))
    });
    hash(bits.flat_map(u64::to_le_bytes))
}

/// Regularisations have stores of their own, and so has a GPU, whose last digits differ.
fn store_name(method: EmdMethod, is_on_gpu: bool) -> String {
    match method {
        _ if is_on_gpu => format!("{}-gpu", method.name()),
        EmdMethod::Sinkhorn { regularisation } => format!("sinkhorn-{regularisation:e}"),
        _ => method.name().to_owned(),
    }
}

fn largest_gap(method: EmdMethod, pairs: &Pairs, num_clouds: usize) -> Option<f64> {
    let has_gap = matches!(method, EmdMethod::Exact | EmdMethod::Sinkhorn { .. });
    let gap = |(i, j)| match pairs.get(i, j) {
        Some(Known::Value(_, gap)) => gap,
        _ => 0.0,
    };
    has_gap.then(|| Pairs::all(num_clouds).map(gap).fold(0.0, f64::max))
}

/// From neighbours to metrics.
fn summarise(neighbours: &Neighbours, num_samples: usize, stream: Stream) -> NeighbourMetrics {
    let (samples, references) = neighbours.other.split_at(num_samples);
    let least: Vec<f64> =
        references.iter().map(|nearest| nearest.map_or(0.0, |nearest| nearest.distance)).collect();
    let mut is_covered = vec![0.0; references.len()];
    for nearest in samples.iter().flatten() {
        is_covered[nearest.index - num_samples] = 1.0;
    }
    let score = |(own, other): (&Option<_>, &Option<_>)| -> f64 {
        let distance = |nearest: &Option<neighbours::Neighbour>| {
            nearest.map_or(f64::INFINITY, |nearest| nearest.distance)
        };
        match distance(own).total_cmp(&distance(other)) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 0.0,
        }
    };
    let scores: Vec<f64> = neighbours.own.iter().zip(&neighbours.other).map(score).collect();
    let estimate = |units: &[f64], number, high| {
        bootstrap::mean_estimate(units, stream.child(number), (0.0, high))
    };
    NeighbourMetrics {
        matching_distance: estimate(&least, DISTANCE, f64::INFINITY),
        coverage: estimate(&is_covered, COVERAGE, 1.0),
        one_nn_accuracy: estimate(&scores, ACCURACY, 1.0),
        sample_accuracy: estimate(&scores[..num_samples], SAMPLE_ACCURACY, 1.0),
        reference_accuracy: estimate(&scores[num_samples..], REFERENCE_ACCURACY, 1.0),
    }
}
