//! Sets of vectors to learn from and to be judged by: of a known law, clouds of any dimension, or
//! pictures of one class.
//!
//! Pictures become vectors as Dinh et al. (2017) have them: a level k of 0, …, 255 becomes
//! u = (k + ξ)/256 with a fresh uniform ξ, and y = logit(α + (1 − 2α) u). What a model says about y says
//! about levels, with Jensen's inequality over ξ,
//!
//! ```text
//! log P(k) ≥ log p(y) + Σ log dy/du − d log 256
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::known::KnownSets;
use super::settings::LatentSettings;
use crate::data::image::Images;
use crate::data::normalise::Affine;
use crate::data::{CloudSource, CloudStatistics};
use crate::model::pictures::read_mnist;
use crate::rng::Stream;
use crate::{Error, Result};

/// α: levels stay within ±2.94 after the logit.
const ALPHA: f64 = 0.05;
/// Sets of a known law, or of pictures, from which centre and scale are measured.
const MEASURED: usize = 200;

/// Sets that are learned from and sets that are held out.
#[derive(Clone, Debug)]
pub struct LatentSets {
    train: Origin,
    held_out: Origin,
    set_size: usize,
    pub(crate) scale: SetScale,
}

#[derive(Clone, Debug)]
enum Origin {
    Known(KnownSets),
    Clouds(CloudSource),
    Classes(Arc<Classes>),
}

/// Pictures by what they show.
#[derive(Clone, Debug)]
struct Classes {
    images: Images,
    members: Vec<Vec<usize>>,
}

/// How numbers of the data become those of the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetScale {
    pub(crate) affine: Affine,
    /// Columns of a picture, where elements are pictures.
    pub(crate) picture_width: Option<usize>,
}

/// Sets as a model sees them.
#[derive(Clone, Debug)]
pub(crate) struct DrawnSets {
    /// `[sets, size, d]`, standardised.
    pub(crate) values: Vec<f32>,
    /// Of every set: what is added to log p of the standardised set to have that of the data.
    pub(crate) corrections: Vec<f64>,
    /// log p of every set under the law it was drawn from, where that is known.
    pub(crate) truth: Option<Vec<f64>>,
}

impl LatentSets {
    /// Reads or draws what the settings say.
    pub(super) fn load(settings: &LatentSettings) -> Result<Self> {
        let data = &settings.data;
        let (size, source) = (data.set_size, data.source.as_str());
        if size < 2 {
            let message = format!("`data.set_size` must be at least 2, found {size}");
            let help = "one element says nothing about what the elements of a set share";
            return Err(Error::refused(message).with_help(help));
        }
        if data.num_sets == 0 {
            return Err(Error::refused("`data.num_sets` must be at least 1, found 0"));
        }
        let path = Path::new(source);
        let mut picture_width = None;
        let (train, mut held_out) = if let Some(known) = KnownSets::named(source) {
            (Origin::Known(known), Origin::Known(known))
        } else if let Some((train, test)) = read_mnist(path)? {
            picture_width = Some(train.0.width);
            let classes = |(images, labels): (Images, Option<Vec<u32>>)| {
                Ok::<_, Error>(Origin::Classes(Arc::new(Classes::new(images, labels, size)?)))
            };
            (classes(train)?, classes(test)?)
        } else if path.exists() {
            let stream = Stream::new(data.split_seed, "split");
            let (train, held_out) = CloudSource::open(path)?.hold_out(data.held_out, stream)?;
            (clouds(train, size)?, clouds(held_out, size)?)
        } else {
            return Err(Error::refused(format!("there are no sets `{source}`")).with_help(
                "`bent`, `families` and `arcs` are drawn by the program; or give a file, folder or cache of \
                 clouds, or MNIST's folder, with `--data PATH`",
            ));
        };
        if !data.test.is_empty() {
            held_out = clouds(CloudSource::open(Path::new(&data.test))?, size)?;
        }
        if held_out.dim() != train.dim() {
            let expected = format!("of {} numbers an element, as `data.source`", train.dim());
            return Err(Error::invalid("data.test", expected, held_out.dim()));
        }
        let affine = match &train {
            Origin::Clouds(clouds) => {
                let CloudStatistics { affine, .. } = clouds.statistics()?;
                affine
            }
            drawn => {
                let stream = Stream::new(0, "scale");
                let sets = (0..MEASURED as u64).map(|i| drawn.draw(size, stream.child(i)).0);
                let all: Vec<Vec<f32>> = sets.collect();
                Affine::of_all(all.iter().map(Vec::as_slice), drawn.dim())
            }
        };
        affine.check(train.dim())?;
        let scale = SetScale { affine, picture_width };
        Ok(Self { train, held_out, set_size: size, scale })
    }

    /// d.
    pub(crate) fn dim(&self) -> usize {
        self.train.dim()
    }

    /// Sets to learn from.
    pub(crate) fn training(&self, num_sets: usize, stream: Stream) -> DrawnSets {
        let sets = (0..num_sets as u64).map(|i| {
            let stream = stream.child(i);
            let set = self.train.choose(stream.child(0));
            self.train.draw_from(set, self.set_size, stream.child(1))
        });
        self.drawn(sets, None)
    }

    /// The first `num_sets` held-out sets, or as many as there are.
    pub(crate) fn held_out(&self, num_sets: usize) -> DrawnSets {
        let stream = Stream::new(0, "held out");
        let count = self.held_out.num_sets().map_or(num_sets, |count| match &self.held_out {
            // Any number of sets can be drawn of every class.
            Origin::Classes(_) => num_sets,
            _ => num_sets.min(count),
        });
        let sets = (0..count).map(|i| {
            let set = self.held_out.num_sets().map_or(0, |count| i % count);
            self.held_out.draw_from(set, self.set_size, stream.child(i as u64))
        });
        // An integral a set: nobody asks for it in training.
        let known = match self.held_out {
            Origin::Known(known) => Some(known),
            _ => None,
        };
        self.drawn(sets, known)
    }

    fn drawn(
        &self,
        sets: impl Iterator<Item = (Vec<f32>, f64)>,
        known: Option<KnownSets>,
    ) -> DrawnSets {
        let mut drawn = DrawnSets { values: Vec::new(), corrections: Vec::new(), truth: None };
        let volume = self.dim() as f64 * f64::from(self.scale.affine.scale).ln();
        for (mut set, correction) in sets {
            if let Some(known) = known {
                drawn.truth.get_or_insert_default().push(known.log_density(&set));
            }
            let count = (set.len() / self.dim()) as f64;
            self.scale.affine.apply(&mut set);
            drawn.values.extend(set);
            drawn.corrections.push(correction - count * volume);
        }
        drawn
    }
}

/// Clouds with enough elements each.
fn clouds(clouds: CloudSource, size: usize) -> Result<Origin> {
    clouds.check_finite()?;
    if let Some(set) = (0..clouds.num_sets()).find(|&set| clouds.size(set) < size) {
        let message = format!(
            "every set must have at least `data.set_size` = {size} elements, found {} in `{}`",
            clouds.size(set),
            clouds.name(set)
        );
        return Err(
            Error::refused(message).with_help("lower `data.set_size`, or leave the set out")
        );
    }
    Ok(Origin::Clouds(clouds))
}

impl Classes {
    fn new(images: Images, labels: Option<Vec<u32>>, size: usize) -> Result<Self> {
        let Some(labels) = labels.filter(|labels| labels.len() == images.len()) else {
            let message = "sets of one class need a label for every picture";
            return Err(
                Error::refused(message).with_help("put MNIST's files of labels beside them")
            );
        };
        let most = labels.iter().max().map_or(0, |&most| most as usize);
        let mut members = vec![Vec::new(); most + 1];
        for (index, &label) in labels.iter().enumerate() {
            members[label as usize].push(index);
        }
        members.retain(|class| class.len() >= size);
        if members.is_empty() {
            let message = format!("no class has `data.set_size` = {size} pictures");
            return Err(Error::refused(message).with_help("lower `data.set_size`"));
        }
        Ok(Self { images, members })
    }
}

impl Origin {
    fn dim(&self) -> usize {
        match self {
            Self::Known(known) => known.dim(),
            Self::Clouds(clouds) => clouds.dim(),
            Self::Classes(classes) => {
                classes.images.width * classes.images.height * classes.images.channels
            }
        }
    }

    /// How many sets, or classes, there are; `None` where sets are drawn from a law.
    fn num_sets(&self) -> Option<usize> {
        match self {
            Self::Known(_) => None,
            Self::Clouds(clouds) => Some(clouds.num_sets()),
            Self::Classes(classes) => Some(classes.members.len()),
        }
    }

    /// One of them.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the count")]
    fn choose(&self, stream: Stream) -> usize {
        let mut uniform = [0.0_f32];
        stream.fill_uniform(0, 0, &mut uniform);
        let count = self.num_sets().unwrap_or(1);
        ((f64::from(uniform[0]) * count as f64) as usize).min(count - 1)
    }

    fn draw(&self, size: usize, stream: Stream) -> (Vec<f32>, f64) {
        self.draw_from(self.choose(stream.child(0)), size, stream.child(1))
    }

    /// `size` elements of set or class `set`, and the correction of their log density.
    fn draw_from(&self, set: usize, size: usize, stream: Stream) -> (Vec<f32>, f64) {
        match self {
            Self::Known(known) => (known.draw(size, stream), 0.0),
            Self::Clouds(clouds) => {
                let (points, dim) = (clouds.set(set), clouds.dim());
                let order = stream.permutation(points.len() / dim);
                let chosen = order[..size].iter();
                (chosen.flat_map(|&row| points[row * dim..][..dim].to_vec()).collect(), 0.0)
            }
            Self::Classes(classes) => {
                let members = &classes.members[set];
                let order = stream.child(0).permutation(members.len());
                let chosen =
                    order[..size].iter().map(|&place| classes.images.image(members[place]));
                let levels: Vec<u8> = chosen.flatten().copied().collect();
                dequantised(&levels, stream.child(1))
            }
        }
    }
}

/// y of levels, and Σ log dy/du − d log 256.
#[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
fn dequantised(levels: &[u8], stream: Stream) -> (Vec<f32>, f64) {
    let mut noise = vec![0.0_f32; levels.len()];
    stream.fill_uniform(0, 0, &mut noise);
    let mut correction = 0.0;
    let values = levels.iter().zip(noise).map(|(&level, xi)| {
        let u = (f64::from(level) + f64::from(xi)) / 256.0;
        let s = ALPHA + (1.0 - 2.0 * ALPHA) * u;
        correction += ((1.0 - 2.0 * ALPHA) / (s * (1.0 - s))).ln() - 256_f64.ln();
        (s / (1.0 - s)).ln() as f32
    });
    let values = values.collect();
    (values, correction)
}

impl SetScale {
    /// Elements of a model, standardised, in the units of the data: levels of 0 to 255 of pictures.
    pub(crate) fn restored(&self, mut values: Vec<f32>) -> Vec<f32> {
        self.affine.invert(&mut values);
        if self.picture_width.is_some() {
            for value in &mut values {
                let s = 1.0 / (1.0 + (-f64::from(*value)).exp());
                let u = ((s - ALPHA) / (1.0 - 2.0 * ALPHA)).clamp(0.0, 1.0);
                #[expect(clippy::cast_possible_truncation, reason = "a level")]
                let level = (256.0 * u).floor().min(255.0) as f32;
                *value = level;
            }
        }
        values
    }

    pub(super) fn numbers(&self) -> BTreeMap<String, Vec<f64>> {
        let wide = |numbers: &[f32]| numbers.iter().map(|&x| f64::from(x)).collect();
        BTreeMap::from([
            ("centre".to_owned(), wide(&self.affine.centre)),
            ("scale".to_owned(), wide(&[self.affine.scale])),
            ("picture_width".to_owned(), vec![self.picture_width.unwrap_or(0) as f64]),
        ])
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "they were f32 and a count"
    )]
    pub(super) fn from_numbers(numbers: &BTreeMap<String, Vec<f64>>) -> Result<Self> {
        let read = |name: &str| {
            let found = numbers.get(name).filter(|numbers| !numbers.is_empty());
            found.ok_or_else(|| {
                Error::failed(format!("the checkpoint has no `{name}`: is it a model of sets?"))
            })
        };
        let centre: Vec<f32> = read("centre")?.iter().map(|&x| x as f32).collect();
        let affine = Affine { centre, scale: read("scale")?[0] as f32 };
        affine.check(affine.centre.len())?;
        let width = read("picture_width")?[0] as usize;
        Ok(Self { affine, picture_width: (width > 0).then_some(width) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There and back, and the volume against a difference: dy/du of one pixel.
    #[test]
    fn levels_survive_the_logit_and_its_volume_is_right() {
        let levels: Vec<u8> = (0..=255).collect();
        let (values, correction) = dequantised(&levels, Stream::new(1, "noise"));
        let affine = Affine::identity(256);
        let scale = SetScale { affine, picture_width: Some(16) };
        let back = scale.restored(values.clone());
        for (level, back) in levels.iter().zip(back) {
            // f32 rounds a number at the very edge of its cell.
            assert!((f32::from(*level) - back).abs() <= 1.0, "{level} {back}");
        }
        let mut expected = 0.0;
        for value in &values {
            let s = 1.0 / (1.0 + (-f64::from(*value)).exp());
            expected += (0.9 / (s * (1.0 - s)) / 256.0).ln();
        }
        assert!((correction - expected).abs() < 1e-4, "{correction} {expected}");
    }

    #[test]
    fn scales_survive_a_checkpoint() {
        let affine = Affine { centre: vec![0.5, -1.0], scale: 2.5 };
        let scale = SetScale { affine, picture_width: None };
        assert_eq!(SetScale::from_numbers(&scale.numbers()).unwrap(), scale);
        assert!(SetScale::from_numbers(&BTreeMap::new()).is_err());
    }
}
