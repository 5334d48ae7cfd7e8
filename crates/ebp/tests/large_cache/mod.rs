//! A cache of clouds of any size, learned from as a run does, with the memory that took.

use std::error::Error;
use std::path::Path;

use ebp::data::cache::{CacheOptions, Kind, SetInfo};
use ebp::data::normalise::NormaliseBy;
use ebp::data::{CacheWriter, CloudSource, Split};
use ebp::nn::Step;
use ebp::process::EnergyBasedProcess;
use ebp::recipe::{EnergyBasedConfig, Space};
use ebp::rng::Stream;
use ebp::tape::Device;
use ebp::train::{CloudTraining, Trainable};

/// Points of a cloud: 24 KiB.
const NUM_POINTS: usize = 2048;

/// Writes clouds of about `num_bytes` together, normalised one by one.
pub(crate) fn write_cache(path: &Path, num_bytes: usize) -> Result<usize, Box<dyn Error>> {
    let options = CacheOptions {
        kind: Kind::Clouds,
        dim: 3,
        value_dim: 3,
        picture_size: None,
        source: "shells".into(),
        normalise_by: NormaliseBy::Sphere,
    };
    let mut writer = CacheWriter::create(path, options)?;
    let num_sets = num_bytes.div_ceil(4 * 3 * NUM_POINTS);
    let mut points = vec![0.0; 3 * NUM_POINTS];
    Stream::new(1, "shell").fill_normal(0, 0, &mut points);
    for point in points.chunks_exact_mut(3) {
        let norm = point.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-3);
        for x in point.iter_mut() {
            *x /= norm;
        }
    }
    for number in 0..num_sets {
        // Each a little flatter than the last, so that they differ.
        for point in points.chunks_exact_mut(3) {
            point[2] *= 1.0 - 1.0 / num_sets as f32;
        }
        let split = if number % 16 == 0 { Split::Test } else { Split::Train };
        writer.push(&points, SetInfo { name: number.to_string(), class: None, split })?;
    }
    writer.finish()?;
    Ok(num_sets)
}

/// What a run does with its data: statistics, `num_steps` steps, held-out nats, codes of all sets.
pub(crate) fn learn(path: &Path, num_steps: u64) -> Result<(), Box<dyn Error>> {
    let (train, held_out) = CloudSource::open(path)?.hold_out(1, Stream::new(1, "split"))?;
    let statistics = train.statistics()?;
    let train = train.standardised(statistics.affine.clone())?;
    let held_out = held_out.standardised(statistics.affine)?;
    let space = Space::points(3, statistics.largest + 0.4);
    let config = EnergyBasedConfig {
        latent_dim: 4,
        encoder_widths: vec![16],
        head_widths: vec![],
        energy_widths: vec![16],
        num_proposals: 64,
        encoder_points: 64,
        likelihood_points: 64,
        ..EnergyBasedConfig::points()
    };
    let process = EnergyBasedProcess::new(config, space, 1, &Device::default())?;
    let mut training = CloudTraining::new(process, train.clone(), 64, 1)?;
    for number in 0..num_steps {
        let step = |number| {
            let stream = Stream::new(3, "steps").child(number);
            Step { number, num_steps, stream, learning_rate_factor: 1.0 }
        };
        training.foresee(&step(number + 1));
        training.step(&step(number))?;
    }
    let process = training.into_process();
    let held_out = held_out.first_sets(64);
    let held_out: Vec<&[f32]> = held_out.iter().map(AsRef::as_ref).collect();
    process.evaluate(&process.point_sets(&held_out)?, Stream::new(1, "evaluation"))?;
    // A set at a time, so that no more than one is in memory.
    for index in 0..train.num_sets() {
        let codes = process.encode(&process.point_sets(&[&*train.set(index)])?)?;
        if codes.num_sets() != 1 {
            return Err("a set has no code".into());
        }
    }
    Ok(())
}

/// The most memory this process ever had, in bytes; `None` where the system does not say.
pub(crate) fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(1024 * kibibytes)
}
