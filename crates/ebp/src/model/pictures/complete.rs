//! Several pictures that a picture with missing pixels could be.

use image::RgbImage;

use super::tiles::{take_next, tiles};
use super::{GivenPicture, PictureModel, PictureSize, Trained, element, exact};
use crate::figure::Drawing;
use crate::figure::mosaic::{Mosaic, Row, Thumbnail};
use crate::process::Process;
use crate::recipe::Estimator;
use crate::rng::Stream;
use crate::{Error, Result};

/// Draws of the latent behind the maps of energy and standard deviation.
pub(super) const MAP_DRAWS: usize = 32;

/// Models without parameters of single places read pictures up to this side at once, and larger ones in
/// tiles of it: what a network holds of a picture grows with its area.
const LARGEST_SIDE: usize = 128;

/// How pixels are filled in, once the latent is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelDraw {
    /// The mean of every pixel's law: no grain.
    Mean,
    /// A draw from every pixel's law, each on its own.
    Grain,
    /// In portions, each given those before it; for models with exact laws of levels.
    Rounds {
        /// How many.
        rounds: usize,
        /// Whether pixels are shown as drawn, or at the end as means given the others.
        has_grain: bool,
    },
    /// The pixels of a model over (x, t), moved by so many Langevin steps.
    Langevin(usize),
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct CompleteOptions {
    /// How many completions.
    pub count: usize,
    /// How their pixels are drawn.
    pub draw: PixelDraw,
    /// All randomness.
    pub stream: Stream,
    /// The side of tiles, for models without parameters of single places; without it pictures up to
    /// 128 × 128 are read at once.
    pub tile: Option<usize>,
}

impl Default for CompleteOptions {
    fn default() -> Self {
        Self { count: 8, draw: PixelDraw::Mean, stream: Stream::new(0, "complete"), tile: None }
    }
}

/// What a model makes of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Completions {
    /// Whole pictures, `[count][height, width, channels]`.
    pub pictures: Vec<Vec<u8>>,
    /// Variance over draws of every missing pixel on [−1, 1], mean over channels.
    pub variances: Vec<f64>,
    /// −log p of every missing pixel, in nats.
    pub energies: Vec<f64>,
}

/// What a model finds for a picture of its own size.
pub(super) struct Found {
    /// Values of the missing pixels on [−1, 1], `[count, missing, channels]`.
    pub(super) values: Vec<f64>,
    /// See [`Completions`].
    pub(super) variances: Vec<f64>,
    /// See [`Completions`].
    pub(super) energies: Vec<f64>,
}

/// What is asked of a model for a picture of its own size.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) count: usize,
    pub(super) draw: PixelDraw,
    /// Whether variances and energies are, too.
    pub(super) has_maps: bool,
    pub(super) stream: Stream,
}

impl PictureModel {
    /// Fills in what is missing, several times. Pictures larger than the model are completed in
    /// overlapping tiles; variances and energies are then those beside what the first completion has
    /// around a tile.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the model cannot draw pixels in the way asked for, is a rival, or the
    /// picture is smaller than the model in one direction.
    pub fn complete(&self, given: &GivenPicture, options: &CompleteOptions) -> Result<Completions> {
        self.complete_watched(given, options, &mut |_, _| {})
    }

    /// The same; `watch` is told after every tile how many of how many missing pixels are filled in.
    ///
    /// # Errors
    ///
    /// As [`complete`](Self::complete).
    pub fn complete_watched(
        &self,
        given: &GivenPicture,
        options: &CompleteOptions,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<Completions> {
        let (own, tile) = (given.size(), self.tile(given.size(), options.tile)?);
        let resized;
        let model = if tile == self.size() {
            self
        } else {
            resized = self.resized(tile)?;
            &resized
        };
        let asked = Asked {
            count: options.count,
            draw: options.draw,
            has_maps: true,
            stream: options.stream,
        };
        let missing = given.missing().len();
        if own == tile {
            let Found { values, variances, energies } = model.find(given, asked)?;
            let of = |values: &[f64]| filled(&given.levels, &given.mask, given.channels, values);
            let pictures = values.chunks_exact(missing * given.channels).map(of).collect();
            watch(missing, missing);
            return Ok(Completions { pictures, variances, energies });
        }
        model.complete_in_tiles(given, asked, watch)
    }

    /// The size that the model is used with for a picture.
    fn tile(&self, picture: PictureSize, tile: Option<usize>) -> Result<PictureSize> {
        let model = self.size();
        if picture.channels != model.channels {
            return Err(Error::invalid("channels", model.channels.to_string(), picture.channels));
        }
        if self.reads_any_size() {
            let side = tile.unwrap_or(LARGEST_SIDE).max(1);
            let (width, height) = (picture.width.min(side), picture.height.min(side));
            return Ok(PictureSize { width, height, channels: model.channels });
        }
        let own = format!("{} x {}", model.width, model.height);
        if let Some(side) = tile
            && (side, side) != (model.width, model.height)
        {
            let message = format!(
                "this model has parameters of single places: its tiles have {own} pixels, \
                 `--tile {side}` asks for {side} x {side}"
            );
            return Err(Error::refused(message).with_help("leave `--tile` out"));
        }
        if picture.width < model.width || picture.height < model.height {
            let message = format!(
                "the picture must have at least {own} pixels, which the model knows, found {} x {}",
                picture.width, picture.height
            );
            let help = "`--resize` brings picture and mask to the model's size";
            return Err(Error::refused(message).with_help(help));
        }
        Ok(model)
    }

    /// A tile at a time, every completion given what it has there already.
    fn complete_in_tiles(
        &self,
        given: &GivenPicture,
        asked: Asked,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<Completions> {
        let (width, channels) = (given.width, given.channels);
        let mut left = tiles(given.size(), self.size());
        let mut state = given.clone();
        let mut pictures = vec![given.levels.clone(); asked.count];
        let [mut variances, mut energies] = [0, 1].map(|_| vec![0.0; given.mask.len()]);
        let (all, mut number) = (given.missing().len(), 0);
        while let Some(tile) = take_next(&mut left, width, &state.mask) {
            let kept = tile.kept(width, &state.mask);
            for (draw, picture) in pictures.iter_mut().enumerate() {
                std::mem::swap(&mut state.levels, picture);
                let part = tile.cut(&state);
                std::mem::swap(&mut state.levels, picture);
                let stream = asked.stream.child(number).child(draw as u64);
                let found =
                    self.find(&part, Asked { count: 1, has_maps: draw == 0, stream, ..asked })?;
                let levels = filled(&part.levels, &part.mask, channels, &found.values);
                for &(missing, own, place) in &kept {
                    picture[place * channels..][..channels]
                        .copy_from_slice(&levels[own * channels..][..channels]);
                    if draw == 0 {
                        variances[place] = found.variances[missing];
                        energies[place] = found.energies[missing];
                    }
                }
            }
            for &(.., place) in &kept {
                state.mask[place] = true;
            }
            number += 1;
            watch(all - state.missing().len(), all);
        }
        let of_missing = |numbers: &[f64]| given.missing().iter().map(|&at| numbers[at]).collect();
        let (variances, energies) = (of_missing(&variances), of_missing(&energies));
        Ok(Completions { pictures, variances, energies })
    }

    fn find(&self, given: &GivenPicture, asked: Asked) -> Result<Found> {
        match &self.process {
            Trained::EnergyBased(process) => match process.config().estimator {
                Estimator::Exact => exact::complete(process, given, asked),
                _ => element::complete(process, given, asked),
            },
            Trained::Rival(process) => Err(Error::refused(format!(
                "this model is a {}; only energy-based ones complete pictures",
                process.name()
            ))),
        }
    }
}

impl Completions {
    /// The completions as images.
    pub fn images(&self, size: PictureSize) -> Vec<RgbImage> {
        self.thumbnails(size).iter().map(Thumbnail::image).collect()
    }

    fn thumbnails(&self, size: PictureSize) -> Vec<Thumbnail> {
        let thumbnail = |levels: &Vec<u8>| Thumbnail::new(size.width, size.channels, levels);
        self.pictures.iter().map(thumbnail).collect()
    }

    /// Maps of energy and of standard deviation: dark is certain.
    pub fn maps(&self, given: &GivenPicture, size: PictureSize) -> [RgbImage; 2] {
        self.heat(given, size).map(|map| map.image())
    }

    fn heat(&self, given: &GivenPicture, size: PictureSize) -> [Thumbnail; 2] {
        let map = |numbers: &[f64]| {
            let mut all = vec![0.0; given.mask.len()];
            let missing = all.iter_mut().zip(&given.mask).filter(|(_, known)| !**known);
            missing.zip(numbers).for_each(|((cell, _), number)| *cell = *number);
            Thumbnail::heat(size.width, &all)
        };
        let std_devs: Vec<f64> = self.variances.iter().map(|variance| variance.sqrt()).collect();
        [map(&self.energies), map(&std_devs)]
    }

    /// What was given, all completions, and the two maps.
    pub fn figure(&self, given: &GivenPicture, size: PictureSize) -> Drawing {
        let row = |label: &str, pictures| Row { label: label.into(), pictures };
        let shaded = Thumbnail::shaded(&given.levels, &given.mask, size.width, size.channels);
        let pictures = self.thumbnails(size);
        let mut all = vec![row("given", vec![shaded])];
        all.extend(pictures.chunks(8).map(|pictures| row("completions", pictures.to_vec())));
        all.push(row("energy, std dev", self.heat(given, size).to_vec()));
        Mosaic { groups: vec![(String::new(), all)] }.draw()
    }
}

/// The known levels, and the unknown ones from values on [−1, 1].
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a level")]
pub(crate) fn filled(known: &[u8], mask: &[bool], channels: usize, values: &[f64]) -> Vec<u8> {
    let mut values = values.iter();
    let level = |value: f64| (128.0 * (value + 1.0)).floor().clamp(0.0, 255.0) as u8;
    known
        .iter()
        .enumerate()
        .map(|(at, &known)| {
            if mask[at / channels] { known } else { values.next().map_or(0, |&value| level(value)) }
        })
        .collect()
}
