//! Built-in shapes as a cache in shards: collections larger than the memory, drawn in parallel.

use std::path::Path;

use super::{ShapeClass, shape_cloud};
use crate::data::cache::{
    CacheOptions, CacheWriter, Kind, SetInfo, ShardPlan, ShardReport, Split, write_shards,
};
use crate::data::normalise::NormaliseBy;
use crate::{Result, Share};

/// Which shapes are drawn.
#[derive(Clone, Debug)]
pub struct ShapeCollection {
    /// The classes, one after the other.
    pub classes: Vec<ShapeClass>,
    /// The same seed draws the same shapes.
    pub seed: u64,
    /// Number of the first shape of each class.
    pub first: u64,
    /// Shapes of each class.
    pub count: usize,
    /// Points of each shape.
    pub num_points: usize,
    /// The normalisation that is recorded.
    pub normalise_by: NormaliseBy,
}

const DIM: usize = 3;

impl ShapeCollection {
    /// Writes the shapes as a cache in `num_shards` files. Shards that are there from an earlier call are
    /// kept. `watch` is told how many are done.
    ///
    /// # Errors
    ///
    /// As [`shape_cloud`] and [`write_shards`].
    pub fn write_shards(
        &self,
        out: &Path,
        num_shards: usize,
        watch: &(dyn Fn(usize) + Sync),
    ) -> Result<ShardReport> {
        let total = self.classes.len() * self.count;
        let num_shards = num_shards.min(total).max(1);
        let range = |number: usize| Ok(Share::new(number + 1, num_shards)?.range(total));
        let names: Vec<&str> = self.classes.iter().map(|class| class.name()).collect();
        let inputs = (0..num_shards).map(|number| {
            let range = range(number)?;
            Ok(vec![format!("shapes {}..{} of {}", range.start, range.end, names.join(", "))])
        });
        let Self { seed, first, count, num_points, normalise_by, .. } = *self;
        let plan = ShardPlan {
            inputs: inputs.collect::<Result<_>>()?,
            settings: format!(
                "{count} of each from {first}, seed {seed}, points {num_points}, normalise {normalise_by:?}"
            ),
            source: format!("built-in shapes, seed {seed}"),
            normalise_by,
            validation: 0.0,
            test: 0.0,
            seed,
        };
        let fill = |shard: usize, path: &Path| {
            let options = CacheOptions {
                kind: Kind::Clouds,
                dim: DIM,
                value_dim: DIM,
                picture_size: None,
                source: plan.source.clone(),
                normalise_by,
            };
            let mut writer = CacheWriter::create(path, options)?;
            for place in range(shard)? {
                let (class, number) = (self.classes[place / count], first + (place % count) as u64);
                let cloud = shape_cloud(class, seed, number, num_points)?;
                let class = Some(class.name().to_owned());
                let info = SetInfo { name: number.to_string(), class, split: Split::Train };
                writer.push(&cloud.points, info)?;
            }
            writer.finish()
        };
        write_shards(out, &plan, &fill, watch)
    }
}
