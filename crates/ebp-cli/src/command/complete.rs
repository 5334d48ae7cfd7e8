//! `ebp complete`: several pictures that a picture with missing pixels could be.

use std::path::PathBuf;

use clap::Args;
use ebp::figure::Figure;
use ebp::model::{CompleteOptions, GivenPicture, MaskOptions, Model, PixelDraw};
use ebp::rng::Stream;
use serde::Serialize;

use crate::args::Common;
use crate::failure::Failure;
use crate::{device, output, progress, theme};

const HELP: &str = "\
Picture and mask are PNG or JPEG. The mask is as large as the picture: white is missing, black and
transparent is known. What is transparent in the picture is missing in any case. Nothing else is needed:
no original.

Pictures larger than the model are completed in tiles that overlap by half, the one of which most is
known first, each given what is filled in already. Models without parameters of single places read
pictures up to 128 x 128 as they are, and larger ones in tiles (`--tile`). `--resize` brings picture and
mask to the model's size instead; they may then have different sizes.

What is written to the folder:
  completion-1.png, …   the picture with its missing pixels filled in
  grid.png, grid.svg    what was given, all completions, and the two maps
  energy.png            −log p of what was filled in, in nats, mean over 32 draws: dark is certain
  std-dev.png           how far 32 draws differ from pixel to pixel

A completion is the mean of every pixel's law given one draw of the latent: without the grain that
a draw of every pixel on its own (`--grain`) has. `--rounds 16` draws the pixels in sixteen portions,
each given those before it, and then shows each as its mean given the others (with `--grain` as drawn):
slower, and sharper and more different where the known pixels say little. Models over (x, t)
(`process` importance or ade) can move them by Langevin steps (`--langevin 200`), from where
their sampler puts them or from noise; the noise of the steps falls to nothing.

Examples:
  ebp complete models/digits --image torn.png --mask holes.png
  ebp complete runs/digits --image torn.png --mask holes.png
  ebp complete runs/mnist --image seven.png -k 20 --out seven --json";

/// Arguments of `ebp complete`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CompleteArguments {
    /// Folder of a run of `ebp train` on pictures, or of exported weights such as models/digits
    model: PathBuf,

    /// The picture, PNG or JPEG
    #[arg(long, value_name = "FILE")]
    image: PathBuf,

    /// The mask, PNG or JPEG: white is missing [default: what is transparent in the picture]
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

    /// Fill in the pixels in so many portions, each given those before it; they grow with what is known
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

    /// Side of the tiles in which a large picture is completed [default: the model's size where it has
    /// parameters of single places, otherwise 128]
    #[arg(long, value_name = "PIXELS", conflicts_with = "resize")]
    #[arg(value_parser = crate::args::at_least_one)]
    tile: Option<usize>,

    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "completions")]
    out: PathBuf,

    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    common: Common,
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
    /// What was done to the picture that somebody may not expect.
    notes: Vec<String>,
}

/// Completes and reports.
pub(crate) fn run(arguments: &CompleteArguments) -> Result<(), Failure> {
    let report = arguments.common.install(|| complete(arguments))?;
    if arguments.common.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    let grid = arguments.out.join("grid.png");
    output::print(&format!(
        "{} of {} pixels filled in {} times\n\
         diversity  {:.4} (variance over draws on [-1, 1])\n\
         energy     {:.3} nats per missing pixel\n\
         pictures   {}, all in {}\n",
        report.missing_pixels,
        report.missing_pixels + report.known_pixels,
        arguments.count,
        report.diversity,
        report.energy,
        arguments.out.display(),
        grid.display()
    ))?;
    arguments.common.show([grid.as_path()])
}

fn complete(arguments: &CompleteArguments) -> Result<Report, Failure> {
    let model = Model::load_on(&arguments.model, &device::open()?)?;
    let pictures = model.pictures()?;
    let mask = MaskOptions {
        mask: arguments.mask.as_deref(),
        is_inverted: arguments.invert_mask,
        is_resized: arguments.resize,
    };
    let given = GivenPicture::read(&arguments.image, &mask, pictures.size())?;
    given.notes.iter().for_each(|note| progress::notice(&format!("note: {note}")));
    let size = given.size();
    let draw = match (arguments.langevin, arguments.grain, arguments.rounds) {
        (Some(steps), ..) => PixelDraw::Langevin(steps),
        (None, has_grain, rounds) if rounds > 1 => PixelDraw::Rounds { rounds, has_grain },
        (None, true, _) => PixelDraw::Grain,
        (None, false, _) => PixelDraw::Mean,
    };
    let stream = Stream::new(arguments.seed, "complete");
    // Pixels of all completions at once.
    let count = given.missing().len() as u64;
    let count = progress::count(count, arguments.common.quiet, "pixels");
    let options = CompleteOptions { count: arguments.count, draw, stream, tile: arguments.tile };
    let found = pictures.complete_watched(&given, &options, &mut |done, _| {
        count.set(done as u64);
    })?;
    count.finish();
    let mut pictures: Vec<(String, Figure)> = (1..)
        .zip(found.images(size))
        .map(|(number, picture)| (format!("completion-{number}.png"), picture.into()))
        .collect();
    let [energy, std_dev] = found.maps(&given, size);
    pictures.push(("grid.png".into(), found.figure(&given, size).into()));
    pictures.push(("energy.png".into(), energy.into()));
    pictures.push(("std-dev.png".into(), std_dev.into()));
    let mut files = Vec::new();
    for (name, picture) in pictures {
        let path = arguments.out.join(name);
        picture.save(&path, theme::chosen())?;
        files.push(path.display().to_string());
    }
    let missing = given.missing().len();
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len().max(1) as f64;
    Ok(Report {
        model: model.name(),
        steps: model.step(),
        known_pixels: given.mask.len() - missing,
        missing_pixels: missing,
        diversity: mean(&found.variances),
        energy: mean(&found.energies),
        files,
        notes: given.notes,
    })
}
