//! `ebp complete`: several pictures that a picture with missing pixels could be.
//!
//! The path: model, picture and mask → [`Completions`] → PNG files and a few numbers.

mod element;
mod exact;
mod picture;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use ebp::IndexedSet;
use ebp::process::{Grid, Process};
use serde::Serialize;

use self::picture::Given;
use super::train::pictures::{Size, TrainedPictures, TrainedProcess, shaded};
use crate::failure::Failure;
use crate::output;
use crate::threads::start_threads;
use ebp::figure::mosaic::{Mosaic, Row, Thumbnail};
use ebp::figure::save;

/// Draws of the latent behind the maps of energy and standard deviation.
const MAP_DRAWS: usize = 32;

const HELP: &str = "\
The mask is a picture of the same size: white is missing, black is known. Without a mask the
transparent pixels of the picture are missing. Nothing else is needed: no original.

What is written to the folder:
  completion-1.png, …   the picture with its missing pixels filled in
  grid.png              what was given, all completions, and the two maps
  energy.png            −log p of what was filled in, in nats, mean over 32 draws: dark is certain
  std-dev.png           how far 32 draws differ from pixel to pixel

A completion is the mean of every pixel's law given one draw of the latent: without the grain that
a draw of every pixel on its own (`--grain`) has. `--rounds 8` draws the pixels in eight portions,
each given those before it: slower, sharper where the known pixels say little. Models over (x, t)
(`process` importance or ade) can move them by Langevin steps (`--langevin 200`), from where
their sampler puts them or from noise; the noise of the steps falls to nothing.

Examples:
  ebp complete runs/digits --image torn.png --mask holes.png
  ebp complete runs/mnist --image seven.png -k 20 --out seven --json";

/// Arguments of `ebp complete`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct CompleteArguments {
    /// Folder of a run of `ebp train` on pictures
    model: PathBuf,

    /// The picture, PNG or JPEG
    #[arg(long, value_name = "FILE")]
    image: PathBuf,

    /// The mask, PNG: white is missing [default: what is transparent in the picture]
    #[arg(long, value_name = "FILE")]
    mask: Option<PathBuf>,

    /// White in the mask is known, black is missing
    #[arg(long, requires = "mask")]
    invert_mask: bool,

    /// How many completions
    #[arg(short = 'k', long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = crate::args::at_least_one)]
    count: usize,

    /// Draw every pixel from its law in place of the law's mean
    #[arg(long)]
    grain: bool,

    /// Fill in the pixels in so many portions, each given those before it
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = crate::args::at_least_one)]
    rounds: usize,

    /// Move the pixels by so many Langevin steps, the known ones fixed; for models over (x, t)
    #[arg(long, value_name = "STEPS", conflicts_with = "grain")]
    #[arg(value_parser = crate::args::at_least_one)]
    langevin: Option<usize>,

    /// Resize picture and mask to the size that the model knows
    #[arg(long)]
    resize: bool,

    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "completions")]
    out: PathBuf,

    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::args::number_of_threads)]
    threads: Option<usize>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    model: &'static str,
    steps: u64,
    known_pixels: usize,
    missing_pixels: usize,
    /// Variance over draws of a missing pixel on [−1, 1], mean over pixels.
    diversity: f64,
    /// −log p of a missing pixel, in nats.
    energy: f64,
    files: Vec<String>,
}

/// Completes and reports.
pub(crate) fn run(arguments: &CompleteArguments) -> Result<(), Failure> {
    let threads = start_threads(arguments.threads)?;
    threads.install(|| {
        let model = TrainedPictures::load(&arguments.model)?;
        let given = Given::read(
            &arguments.image,
            arguments.mask.as_deref(),
            arguments.invert_mask,
            arguments.resize,
            model.size,
        )?;
        let (name, found) = match &model.process {
            TrainedProcess::Exact(process) => {
                ("ebp-exact", exact::complete(process, &given, arguments)?)
            }
            TrainedProcess::Element(process) => {
                (process.name(), element::complete(process, &given, arguments)?)
            }
        };
        fs::create_dir_all(&arguments.out)
            .map_err(|error| Failure::cannot("create", &arguments.out, &error))?;
        let files = found.write(&given, model.size, &arguments.out)?;
        let report = Report {
            model: name,
            steps: model.step,
            known_pixels: given.mask.iter().filter(|known| **known).count(),
            missing_pixels: given.mask.iter().filter(|known| !**known).count(),
            diversity: mean(&found.variances),
            energy: mean(&found.energies),
            files,
        };
        if arguments.json {
            return output::print_json(&report);
        }
        output::print(&format!(
            "{} of {} pixels filled in {} times\n\
             diversity  {:.4} (variance over draws on [-1, 1])\n\
             energy     {:.3} nats per missing pixel\n\
             pictures   {}\n",
            report.missing_pixels,
            given.mask.len(),
            arguments.count,
            report.diversity,
            report.energy,
            arguments.out.display()
        ))
    })
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

/// What a model makes of a picture.
struct Completions {
    /// Whole pictures, `[count][height, width, channels]`.
    pictures: Vec<Vec<u8>>,
    /// Variance over draws and −log p of every missing pixel.
    variances: Vec<f64>,
    energies: Vec<f64>,
}

impl Completions {
    /// Writes all files and names them.
    fn write(&self, given: &Given, size: Size, folder: &Path) -> Result<Vec<String>, Failure> {
        let Size { width, channels, .. } = size;
        let mut files = Vec::new();
        let mut write = |picture: &image::RgbImage, name: String| {
            let path = folder.join(name);
            files.push(path.display().to_string());
            save(picture, &path)
        };
        let pictures: Vec<Thumbnail> =
            self.pictures.iter().map(|levels| Thumbnail::new(width, channels, levels)).collect();
        for (number, picture) in (1..).zip(&pictures) {
            write(&picture.image(), format!("completion-{number}.png"))?;
        }
        let map = |numbers: &[f64]| {
            let mut all = vec![0.0; given.mask.len()];
            let missing = all.iter_mut().zip(&given.mask).filter(|(_, known)| !**known);
            missing.zip(numbers).for_each(|((cell, _), number)| *cell = *number);
            all
        };
        let std_devs: Vec<f64> = self.variances.iter().map(|variance| variance.sqrt()).collect();
        let energy = Thumbnail::heat(width, &map(&self.energies));
        let std_dev = Thumbnail::heat(width, &map(&std_devs));
        let given = shaded(&given.levels, &given.mask, width, channels);
        let row = |label: &str, pictures| Row { label: label.into(), pictures };
        let rows = pictures.chunks(8).map(|pictures| row("completions", pictures.to_vec()));
        let mut all = vec![row("given", vec![given])];
        all.extend(rows);
        all.push(row("energy, std dev", vec![energy.clone(), std_dev.clone()]));
        write(&Mosaic { groups: vec![(String::new(), all)] }.draw(), "grid.png".into())?;
        write(&energy.image(), "energy.png".into())?;
        write(&std_dev.image(), "std-dev.png".into())?;
        Ok(files)
    }
}

impl Given {
    fn grid(&self) -> Result<Grid, Failure> {
        Ok(Grid::new(self.width, self.mask.len() / self.width)?)
    }

    /// The places that are missing.
    fn missing(&self) -> Vec<usize> {
        (0..self.mask.len()).filter(|&place| !self.mask[place]).collect()
    }

    fn locations(&self, places: &[usize]) -> Vec<f64> {
        let Ok(grid) = self.grid() else { return Vec::new() };
        places.iter().flat_map(|&place| grid.location(place)).collect()
    }

    /// The known pixels, at the middle of their levels.
    fn context(&self) -> Result<IndexedSet, Failure> {
        let places: Vec<usize> = (0..self.mask.len()).filter(|&place| self.mask[place]).collect();
        let values = places
            .iter()
            .flat_map(|&place| &self.levels[place * self.channels..][..self.channels])
            .map(|&level| (f64::from(level) + 0.5) / 128.0 - 1.0);
        Ok(IndexedSet::new(2, self.channels, self.locations(&places), values.collect())?)
    }
}
