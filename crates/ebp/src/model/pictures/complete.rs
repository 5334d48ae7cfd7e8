//! Several pictures that a picture with missing pixels could be.

use image::RgbImage;

use super::{GivenPicture, PictureModel, PictureSize, Trained, element, exact};
use crate::figure::mosaic::{Mosaic, Row, Thumbnail};
use crate::process::Process;
use crate::recipe::Estimator;
use crate::rng::Stream;
use crate::{Error, Result};

/// Draws of the latent behind the maps of energy and standard deviation.
pub(super) const MAP_DRAWS: usize = 32;

/// How pixels are filled in, once the latent is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelDraw {
    /// The mean of every pixel's law: no grain.
    Mean,
    /// A draw from every pixel's law, each on its own.
    Grain,
    /// In so many portions, each given those before it; for models with exact laws of levels.
    Rounds(usize),
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
}

impl Default for CompleteOptions {
    fn default() -> Self {
        Self { count: 8, draw: PixelDraw::Mean, stream: Stream::new(0, "complete") }
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

impl PictureModel {
    /// Fills in what is missing, several times.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the model cannot draw pixels in the way asked for, or is a rival.
    pub fn complete(&self, given: &GivenPicture, options: &CompleteOptions) -> Result<Completions> {
        match &self.process {
            Trained::EnergyBased(process) => match process.config().estimator {
                Estimator::Exact => exact::complete(process, given, options),
                _ => element::complete(process, given, options),
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
    pub fn figure(&self, given: &GivenPicture, size: PictureSize) -> RgbImage {
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
