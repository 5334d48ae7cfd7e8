//! Same seed, same bytes, from one version to the next: digests of whole batches.
//!
//! The digests were computed by the plain code that came first (one hash table per scale, one point
//! at a time). Whatever makes preparation faster must give the same bits; a change of a digest is a
//! change of every training run and belongs into the changelog. The logarithms and exponentials are
//! those of the C library, whose last bit nearly always vanishes when rounded to f32. The digest of five
//! dimensions is younger: before, cells that differed in the first axes alone were counted as one.

use super::*;
use crate::process::PerturbationConfig;

/// FNV-1a of the bits of all arrays.
fn digest(batch: &Batch) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bits: u64| {
        for byte in bits.to_le_bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for offsets in [&batch.whole, &batch.encoder_offsets, &batch.offsets] {
        add(offsets.num_sets() as u64);
        (0..offsets.num_sets()).for_each(|set| add(offsets.size(set) as u64));
    }
    let arrays = [&batch.encoder_points, &batch.points, &batch.candidates, &batch.log_weights];
    for array in arrays {
        add(array.len() as u64);
        for x in array {
            add(u64::from(x.to_bits()));
        }
    }
    batch.bases.iter().for_each(|x| add(x.to_bits()));
    add(batch.is_near.len() as u64);
    batch.is_near.iter().for_each(|&is_near| add(u64::from(is_near)));
    state
}

/// Shells of `sizes` points around the origin, some of which leave the domain.
fn shells(dim: usize, sizes: &[usize]) -> Vec<Vec<f32>> {
    let shell = |(number, &size): (usize, &usize)| {
        let mut points = vec![0.0; size * dim];
        Stream::new(number as u64, "shells").fill_normal(0, 0, &mut points);
        for point in points.chunks_exact_mut(dim) {
            let norm = point.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-3);
            for x in point {
                *x = *x / norm * 1.5 + 0.2 * *x;
            }
        }
        points
    };
    sizes.iter().enumerate().map(shell).collect()
}

fn prepared(config: &UnconditionalConfig, sizes: &[usize]) -> u64 {
    let sets = shells(config.value_dim, sizes);
    let sets: Vec<SetView<'_>> = sets.iter().map(|set| set.as_slice().into()).collect();
    let stream = Stream::new(5, "pinned");
    let step = Step { number: 40, num_steps: 100, stream, learning_rate_factor: 1.0 };
    digest(&BatchMaker::new(config, None).prepare(&sets, &step).unwrap().batch)
}

fn config(value_dim: usize) -> UnconditionalConfig {
    UnconditionalConfig {
        value_dim,
        half_width: 2.0,
        num_proposals: 300,
        encoder_points: 130,
        likelihood_points: 70,
        ..UnconditionalConfig::default()
    }
}

const SIZES: [usize; 6] = [1, 2, 65, 130, 700, 97];

#[test]
fn in_space() {
    assert_eq!(prepared(&config(3), &SIZES), 0x049d_fef1_a47c_bece);
}

#[test]
fn in_the_plane_with_more_points_of_the_likelihood_and_all_kinds_of_noise() {
    let mut config = config(2);
    (config.encoder_points, config.likelihood_points) = (50, 400);
    config.perturbation.share = 0.8;
    config.augmentation = AugmentationConfig { mirror_axes: vec![1], stretch: 0.1 };
    config.proposal.uniform_share = 0.4;
    assert_eq!(prepared(&config, &SIZES), 0x2bf0_3316_91df_2b21);
}

#[test]
fn perturbed_mirrored_and_with_cells_of_odd_widths() {
    let mut config = config(3);
    config.perturbation = PerturbationConfig { share: 1.0, radius: 1.0, ..Default::default() };
    config.augmentation = AugmentationConfig { mirror_axes: vec![0, 2], stretch: 0.2 };
    config.proposal.cell_widths = vec![0.003, 0.7, 5.0, 0.011];
    config.proposal.uniform_share = 0.05;
    assert_eq!(prepared(&config, &SIZES), 0xfbd2_45dc_55f4_556a);
}

#[test]
fn on_a_line_and_in_five_dimensions_without_jitter() {
    for (dim, expected) in [(1, 0xea67_930d_7d61_1c06), (5, 0xafb9_e6f6_1416_c0c2)] {
        let mut config = config(dim);
        (config.jitter, config.final_jitter) = (0.0, 0.0);
        assert_eq!(prepared(&config, &SIZES), expected, "{dim}");
    }
}

#[test]
fn as_large_as_in_training() {
    let mut config = UnconditionalConfig { num_proposals: 2048, ..UnconditionalConfig::default() };
    config.perturbation.share = 0.5;
    config.proposal.sampler_share = 0.25;
    assert_eq!(prepared(&config, &[2048, 3000, 1500]), 0x9d71_5bf6_5c3e_70d6);
}

/// Only points, and much noise on them.
#[test]
fn without_candidates() {
    let sets = shells(3, &SIZES);
    let sets: Vec<SetView<'_>> = sets.iter().map(|set| set.as_slice().into()).collect();
    let plan = BatchPlan {
        jitter: 0.3,
        is_perturbed: false,
        is_augmented: false,
        num_candidates: 0,
        num_sampled: 0,
    };
    let batch = Batch::new(&sets, &config(3), plan, Stream::new(6, "pinned")).unwrap();
    assert_eq!(digest(&batch), 0xf5f3_f431_9d3e_8c2f);
}
