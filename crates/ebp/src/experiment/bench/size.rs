//! How large the benchmark is.

use serde::{Serialize, Serializer};

use crate::point::{Activation, ContextAt};
use crate::{Error, Result};

/// Most numbers a batch may hold, 8 GiB: beyond it a typing error is likelier than a wish.
const MOST_NUMBERS: usize = 1 << 31;

/// Every size of the benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchSizes {
    /// Sets in the batch.
    pub sets: usize,
    /// Elements of each set.
    pub points: usize,
    /// Numbers of an element.
    pub value_dim: usize,
    /// Numbers of a set's context.
    pub context_dim: usize,
    /// Hidden widths of the energy.
    pub energy_widths: Vec<usize>,
    /// Widths of the encoder, output last.
    pub encoder_widths: Vec<usize>,
    /// σ of the energy.
    #[serde(serialize_with = "by_name")]
    pub activation: Activation,
    /// Where the context enters the energy.
    #[serde(serialize_with = "by_name")]
    pub context_at: ContextAt,
}

/// What reports call a choice.
trait Named {
    fn report_name(&self) -> &'static str;
}

impl Named for Activation {
    fn report_name(&self) -> &'static str {
        self.name()
    }
}

impl Named for ContextAt {
    fn report_name(&self) -> &'static str {
        match self {
            Self::FirstLayer => "first",
            Self::EveryLayer => "every",
        }
    }
}

fn by_name<S: Serializer>(
    choice: &impl Named,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(choice.report_name())
}

impl BenchSizes {
    /// The paper's point clouds: 64 sets of 2048 points in space, context 512.
    pub fn paper_cloud() -> Self {
        Self::with(2048, 512)
    }

    /// 64 sets of 64 points in space, context 128.
    pub fn small() -> Self {
        Self::with(64, 128)
    }

    fn with(points: usize, context_dim: usize) -> Self {
        Self {
            sets: 64,
            points,
            value_dim: 3,
            context_dim,
            energy_widths: vec![128, 64],
            encoder_widths: vec![128, 256, 256, context_dim],
            activation: Activation::Relu,
            context_at: ContextAt::FirstLayer,
        }
    }

    /// The name these sizes deserve: changed ones are no longer the named ones.
    pub fn name(&self) -> &'static str {
        match self {
            sizes if *sizes == Self::paper_cloud() => "paper-cloud",
            sizes if *sizes == Self::small() => "small",
            _ => "custom",
        }
    }

    /// Elements of all sets together.
    pub(super) fn num_elements(&self) -> usize {
        self.sets * self.points
    }

    pub(super) fn check(&self) -> Result<()> {
        let numbers_per_set =
            self.points.checked_mul(self.value_dim).and_then(|n| n.checked_add(self.context_dim));
        match numbers_per_set.and_then(|n| n.checked_mul(self.sets)) {
            Some(numbers) if numbers <= MOST_NUMBERS => Ok(()),
            _ => Err(Error::refused(format!(
                "a batch may hold at most {MOST_NUMBERS} numbers, \
                 sets x (points x value_dim + context_dim)"
            ))
            .with_help("lower `--sets`, `--points`, `--value-dim` or `--context-dim`")),
        }
    }
}
