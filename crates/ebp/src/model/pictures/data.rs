//! Pictures to learn from, to choose by and to judge with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::PictureDataSettings;
use crate::data::digits::draw_digits;
use crate::data::image::{
    Crop, ImageOptions, Images, parse_idx_images, parse_idx_labels, read_images,
};
use crate::{Error, Result};

/// Pictures held out of the training ones, to look at on the way.
const NUM_VALIDATION: usize = 200;
/// Seed of drawn digits: the data are the same whatever the seed of the run.
const DIGITS_SEED: u64 = 0;

/// Pictures of one size.
#[derive(Clone, Debug)]
pub struct PictureData {
    pub(crate) training: Arc<Images>,
    pub(crate) training_labels: Option<Vec<u32>>,
    pub(crate) validation: Images,
    pub(crate) test: Images,
    pub(crate) test_labels: Option<Vec<u32>>,
}

/// Pictures, and what they show if that is known.
pub(in crate::model) type Labelled = (Images, Option<Vec<u32>>);

impl PictureData {
    /// Reads or draws what the settings say.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are no such pictures or too few; otherwise what the file is wrong
    /// about.
    pub fn load(settings: &PictureDataSettings) -> Result<Self> {
        Self::of_parts(settings, Self::read(settings)?)
    }

    /// Pictures that were given, the last ones for the test.
    pub(in crate::model) fn of_images(
        settings: &PictureDataSettings,
        images: Images,
    ) -> Result<Self> {
        Self::of_parts(settings, without_labels(settings, images))
    }

    fn of_parts(
        settings: &PictureDataSettings,
        ((mut training, mut training_labels), (test, test_labels)): (Labelled, Labelled),
    ) -> Result<Self> {
        let count = training.len();
        let num_validation = NUM_VALIDATION.min(count / 10);
        if count < 10 || test.is_empty() {
            return Err(Error::refused(format!(
                "`{}` has too few pictures to learn from and to hold some out: {count}",
                settings.source
            ))
            .with_help("a few thousand are a good beginning"));
        }
        let most = match settings.num_training {
            0 => count - num_validation,
            most => most.min(count - num_validation),
        };
        let validation = training.split_off(count - num_validation);
        drop(training.split_off(most));
        if let Some(labels) = &mut training_labels {
            labels.truncate(most);
        }
        let training = Arc::new(training);
        Ok(Self { training, training_labels, validation, test, test_labels })
    }

    fn read(settings: &PictureDataSettings) -> Result<(Labelled, Labelled)> {
        let source = &settings.source;
        if source == "digits" {
            let (count, num_test) = (settings.num_training + NUM_VALIDATION, settings.num_test);
            let (test, test_labels) = draw_digits(settings.side, 0, num_test, DIGITS_SEED)?;
            let (training, labels) =
                draw_digits(settings.side, num_test as u64, count, DIGITS_SEED)?;
            return Ok(((training, Some(labels)), (test, Some(test_labels))));
        }
        let path = Path::new(source);
        if !path.exists() {
            return Err(Error::refused(format!("there are no pictures in `{source}`")).with_help(
                "`digits` are drawn by the program; or give a folder or zip of pictures, or \
                        MNIST's folder, with `--data PATH`",
            ));
        }
        if let Some(parts) = read_mnist(path)? {
            return Ok(parts);
        }
        let options = ImageOptions {
            crop: match settings.crop_share {
                0.0 => Crop::Whole,
                share => Crop::Share(share),
            },
            size: (settings.side > 0).then_some((settings.side, settings.side)),
            is_grey: settings.is_grey,
        };
        Ok(without_labels(settings, read_images(path, &options)?))
    }
}

/// Pictures to learn from and the last ones for the test, of which nothing else is known.
fn without_labels(settings: &PictureDataSettings, mut images: Images) -> (Labelled, Labelled) {
    let num_test = settings.num_test.min(images.len() / 4);
    let test = images.split_off(images.len() - num_test);
    ((images, None), (test, None))
}

/// Pictures for training and for the test, if the folder has MNIST's files.
pub(in crate::model) fn read_mnist(folder: &Path) -> Result<Option<(Labelled, Labelled)>> {
    let Some(training) = idx_file(folder, "train-images") else { return Ok(None) };
    let test = idx_file(folder, "t10k-images").ok_or_else(|| missing(folder, "t10k-images"))?;
    let training = (read_idx(&training)?, read_labels(folder, "train-labels")?);
    Ok(Some((training, (read_idx(&test)?, read_labels(folder, "t10k-labels")?))))
}

/// The file of MNIST's folder whose name begins so, packed or not.
fn idx_file(folder: &Path, stem: &str) -> Option<PathBuf> {
    let endings = ["-idx3-ubyte.gz", "-idx3-ubyte", "-idx1-ubyte.gz", "-idx1-ubyte"];
    endings.iter().map(|ending| folder.join(format!("{stem}{ending}"))).find(|path| path.is_file())
}

fn missing(folder: &Path, stem: &str) -> Error {
    Error::refused(format!("`{}` has no {stem}-idx3-ubyte.gz", folder.display()))
}

fn read_idx(path: &Path) -> Result<Images> {
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    parse_idx_images(&bytes, &path.display().to_string())
}

fn read_labels(folder: &Path, stem: &str) -> Result<Option<Vec<u32>>> {
    let Some(path) = idx_file(folder, stem) else { return Ok(None) };
    let bytes = std::fs::read(&path).map_err(Error::io("read", &path))?;
    Ok(Some(parse_idx_labels(&bytes, &path.display().to_string())?))
}
