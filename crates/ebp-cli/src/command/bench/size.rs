//! How large the benchmark is: a name, or free sizes.

use clap::ValueEnum;
use miette::miette;
use serde::Serialize;

use crate::args::{ActivationName, BenchArguments, ContextAtName};
use crate::failure::Failure;

/// Most numbers a batch may hold, 8 GiB: beyond it a typing error is likelier than a wish.
const MOST_NUMBERS: usize = 1 << 31;

/// Sizes that have a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NamedSize {
    /// The paper's point clouds: 64 sets of 2048 points in space, context 512
    PaperCloud,
    /// 64 sets of 64 points in space, context 128
    Small,
}

impl NamedSize {
    fn name(self) -> &'static str {
        match self {
            Self::PaperCloud => "paper-cloud",
            Self::Small => "small",
        }
    }

    fn sizes(self) -> Sizes {
        let (points, context_dim) = match self {
            Self::PaperCloud => (2048, 512),
            Self::Small => (64, 128),
        };
        Sizes {
            sets: 64,
            points,
            value_dim: 3,
            context_dim,
            energy_widths: vec![128, 64],
            encoder_widths: vec![128, 256, 256, context_dim],
            activation: ActivationName::Relu,
            context_at: ContextAtName::First,
        }
    }
}

/// Every size of the benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sizes {
    /// Sets in the batch.
    pub(crate) sets: usize,
    /// Elements of each set.
    pub(crate) points: usize,
    /// Numbers of an element.
    pub(crate) value_dim: usize,
    /// Numbers of a set's context.
    pub(crate) context_dim: usize,
    /// Hidden widths of the energy.
    pub(crate) energy_widths: Vec<usize>,
    /// Widths of the encoder, output last.
    pub(crate) encoder_widths: Vec<usize>,
    /// σ of the energy.
    pub(crate) activation: ActivationName,
    /// Where the context enters the energy.
    pub(crate) context_at: ContextAtName,
}

impl Sizes {
    /// The named sizes with the typed ones in their place.
    pub(crate) fn new(arguments: &BenchArguments) -> Result<Self, Failure> {
        let named = arguments.size.sizes();
        let sizes = Self {
            sets: arguments.sets.unwrap_or(named.sets),
            points: arguments.points.unwrap_or(named.points),
            value_dim: arguments.value_dim.unwrap_or(named.value_dim),
            context_dim: arguments.context_dim.unwrap_or(named.context_dim),
            energy_widths: arguments.energy_widths.clone().unwrap_or(named.energy_widths),
            encoder_widths: arguments.encoder_widths.clone().unwrap_or(named.encoder_widths),
            activation: arguments.activation,
            context_at: arguments.context_at,
        };
        let numbers_per_set = sizes
            .points
            .checked_mul(sizes.value_dim)
            .and_then(|n| n.checked_add(sizes.context_dim));
        match numbers_per_set.and_then(|n| n.checked_mul(sizes.sets)) {
            Some(numbers) if numbers <= MOST_NUMBERS => Ok(sizes),
            _ => Err(Failure::Usage(miette!(
                help = "lower `--sets`, `--points`, `--value-dim` or `--context-dim`",
                "a batch may hold at most {MOST_NUMBERS} numbers, \
                 sets x (points x value_dim + context_dim)"
            ))),
        }
    }

    /// The name these sizes deserve: changed ones are no longer the named ones.
    pub(crate) fn name(&self, named: NamedSize) -> &'static str {
        if *self == named.sizes() { named.name() } else { "custom" }
    }

    /// Elements of all sets together.
    pub(crate) fn num_elements(&self) -> usize {
        self.sets * self.points
    }
}
