//! Which cases proptest draws: any width and depth, and set sizes around every tile boundary.

use ebp::point::{Activation, ContextAt, MlpConfig};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{FileFailurePersistence, RngSeed, TestCaseError, TestRunner};

use super::{ACTIVATIONS, Spec};

/// Sizes just below, at and above what a tile or a vector may hold.
const TAILS: [usize; 16] = [1, 5, 6, 7, 8, 15, 16, 17, 23, 24, 25, 47, 48, 49, 96, 97];

/// Runs `check` on `cases` draws; `check` answers `None` to skip one.
///
/// The draws are the same on every run, unless `PROPTEST_RNG_SEED` says otherwise; a longer
/// search is `PROPTEST_CASES=1000 PROPTEST_RNG_SEED=7 cargo test`. Fails if more cases are
/// skipped than half of those run.
pub(crate) fn for_all<S: Strategy>(
    cases: u32,
    source_file: &'static str,
    strategy: &S,
    check: impl Fn(S::Value) -> Option<()>,
) {
    let default = ProptestConfig::default();
    let is_chosen = |name| std::env::var_os(name).is_some();
    let cases = if is_chosen("PROPTEST_CASES") { default.cases } else { cases };
    let config = ProptestConfig {
        cases,
        rng_seed: match default.rng_seed {
            RngSeed::Random => RngSeed::Fixed(2020),
            fixed @ RngSeed::Fixed(_) => fixed,
        },
        max_global_rejects: cases / 2,
        max_shrink_iters: 200,
        source_file: Some(source_file),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..default
    };
    let outcome = TestRunner::new(config).run(strategy, |value| {
        check(value).ok_or_else(|| TestCaseError::reject("too near to a kink, limit or wall"))
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Any network with outputs of the given number, applied to ragged sets.
pub(crate) fn specs(output_dim: impl Strategy<Value = usize>) -> impl Strategy<Value = Spec> {
    let dims = (
        prop_oneof![10 => 1_usize..=5, 1 => Just(9), 1 => Just(20)],
        prop_oneof![4 => Just(0), 6 => 1_usize..=4, 1 => Just(11)],
        prop_oneof![3 => Just(0), 7 => 1_usize..=20],
        output_dim,
    );
    let network = (
        prop::collection::vec(1_usize..=40, 0..=3),
        select(&ACTIVATIONS[..]),
        select(&[ContextAt::FirstLayer, ContextAt::EveryLayer][..]),
        any::<bool>(),
    );
    let sizes = prop_oneof![
        8 => prop::collection::vec(prop_oneof![1_usize..=9, select(&TAILS[..])], 1..=3),
        1 => Just(vec![130]),
    ];
    (dims, network, sizes, any::<u64>()).prop_map(|(dims, network, sizes, seed)| {
        let (value_dim, location_dim, context_dim, output_dim) = dims;
        let (hidden_widths, activation, context_at, activate_output) = network;
        let config = MlpConfig {
            value_dim,
            location_dim,
            context_dim,
            hidden_widths,
            output_dim,
            activation,
            context_at,
            activate_output,
        };
        Spec { config, sizes, spread: 1.0, seed }
    })
}

/// Networks wider than a tile's registers, some wider than L1, with few elements.
pub(crate) fn large_specs(output_dim: usize) -> Vec<Spec> {
    let sizes: [&[usize]; 5] = [&[25, 1, 7], &[49], &[7, 2], &[13], &[24, 3]];
    let widths: [&[usize]; 5] = [&[128, 64], &[200], &[512, 512, 256], &[1024], &[64, 300, 16]];
    let contexts = [512, 0, 40, 128, 17];
    (0..5)
        .map(|k| Spec {
            config: MlpConfig {
                value_dim: [3, 1, 3, 2, 5][k],
                location_dim: [0, 2, 0, 26, 1][k],
                context_dim: contexts[k],
                hidden_widths: widths[k].to_vec(),
                output_dim,
                activation: ACTIVATIONS[k],
                context_at: [ContextAt::FirstLayer, ContextAt::EveryLayer][k % 2],
                activate_output: false,
            },
            sizes: sizes[k].to_vec(),
            spread: 1.0,
            seed: k as u64,
        })
        .collect()
}

/// Sets with so many elements that threads get portions of several tiles, and a network wide
/// enough to have small tiles.
pub(crate) fn numerous_specs(output_dim: usize) -> Vec<Spec> {
    let widths = [300, 9];
    let sizes = [vec![500, 1, 299, 7], vec![1700, 3, 900]];
    let activations = [Activation::Tanh, Activation::Relu];
    (0..2)
        .map(|k| Spec {
            config: MlpConfig {
                hidden_widths: vec![widths[k]],
                activation: activations[k],
                output_dim,
                ..Spec::default().config
            },
            sizes: sizes[k].clone(),
            spread: 1.0,
            seed: k as u64,
        })
        .collect()
}
