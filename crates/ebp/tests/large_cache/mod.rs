//! A cache of clouds of any size, learned from as a run does, with the memory that took.

use std::error::Error;
use std::path::Path;

use ebp::data::cache::{CacheOptions, Kind, SetInfo};
use ebp::data::normalise::NormaliseBy;
use ebp::data::{CacheWriter, Split};
use ebp::model::{Model, Settings, TrainOptions};
use ebp::rng::Stream;

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

/// A run with small networks, as `ebp train cloud` makes it: statistics of all points, `num_steps` steps,
/// a look at what is held out, and the codes of all training sets.
pub(crate) fn learn(path: &Path, num_steps: u64) -> Result<(), Box<dyn Error>> {
    let changes = [
        &format!("data.source={:?}", path.display().to_string()),
        &format!("train.num_steps={num_steps}"),
        "evaluation.every=1000000",
        "model.latent_dim=4",
        "model.encoder_widths=[16]",
        "model.head_widths=[]",
        "model.energy_widths=[16]",
        "model.num_proposals=64",
        "model.encoder_points=64",
        "model.likelihood_points=64",
    ];
    Model::train(Settings::preset("cloud", &changes)?, TrainOptions::default())?;
    Ok(())
}

/// The most memory this process ever had, in bytes; `None` where the system does not say.
pub(crate) fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: usize = line.split_whitespace().next()?.parse().ok()?;
    Some(1024 * kibibytes)
}
