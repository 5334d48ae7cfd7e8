//! `ebp view`: a page to look at a run, a model, clouds or pictures with, and a server for runs under way.
//!
//! ```text
//! album    what a model shows            folder   what the folder of a run holds
//! pack     numbers as bytes as text      page     one file that needs nothing else
//! live     the same page, kept up to date by a server on 127.0.0.1 (request, record)
//! ```

mod folder;
mod live;
mod pack;
mod page;
mod record;
mod request;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use ebp::data::image::is_image;
use ebp::experiment::album::{AlbumOptions, album};
use ebp::model::{Model, PriorKind, read_cloud_inputs};
use ebp::rng::Stream;
use miette::miette;
use serde::Serialize;

use self::page::Page;
use crate::args::{Common, PRIORS, choice};
use crate::failure::Failure;
use crate::{device, output, progress};

const HELP: &str = "\
The page is one file. It opens from the disk, loads nothing from anywhere and may be sent to others: of the
settings it holds the names of files, not their folders, and not the command line. Clouds are turned with the
mouse, a finger or the arrows; `?` on the page tells all keys.

SOURCE is the folder of a run or of exported weights; files, folders or caches of clouds; or pictures and
folders of them. Of a model of clouds the page has samples beside their nearest training sets, held-out sets
drawn again, points on their way from noise, and blends; of curves their densities given a point that can be
dragged; topics, simulated patterns, pictures, training curves and numbers where they exist.

`--live` serves the page of a run that is under way, on 127.0.0.1 alone, and adds what the run records. It
reads the run's files and never writes; the run does not know of it.

Examples:
  ebp view runs/shapes -o shapes.html
  ebp view models/chairs -n 64
  ebp view scans/ -o scans.html
  ebp view --live runs/shapes --port 8000";

/// Arguments of `ebp view`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ViewArguments {
    /// Folder of a run or a model, clouds, or pictures
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,

    /// Where the page goes [default: view.html in the run's folder, or here]
    #[arg(short, long, value_name = "FILE", conflicts_with = "live")]
    out: Option<PathBuf>,

    /// Serve the page of a run that is under way, until Ctrl-C
    #[arg(long)]
    live: bool,

    /// The port to serve at [default: a free one]
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 0,
        requires = "live",
        hide_default_value = true
    )]
    port: u16,

    /// Samples of a model of clouds
    #[arg(short = 'n', long, value_name = "N", default_value_t = AlbumOptions::default().num_samples, value_parser = crate::args::at_least_one)]
    count: usize,

    /// Points of each
    #[arg(long, value_name = "N", default_value_t = AlbumOptions::default().num_points, value_parser = crate::args::at_least_one)]
    points: usize,

    /// The law of θ
    #[arg(long, default_value = "kernel", value_parser = choice(PRIORS))]
    prior: PriorKind,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Serialize)]
struct Report {
    /// What the page shows, in the order of its tabs.
    rooms: Vec<&'static str>,
    clouds: usize,
    points: usize,
    pictures: usize,
    bytes: usize,
    notes: Vec<String>,
    page: String,
}

/// Makes the page, or serves it.
pub(crate) fn run(arguments: &ViewArguments) -> Result<(), Failure> {
    if arguments.live {
        return live::serve(only(arguments)?, arguments.port, arguments.common.json);
    }
    arguments.common.install(|| write(arguments))
}

fn only(arguments: &ViewArguments) -> Result<&Path, Failure> {
    match arguments.sources.as_slice() {
        [source] => Ok(source),
        more => Err(Failure::Usage(miette!(
            help = "give one run: `ebp view --live runs/shapes`",
            "--live serves one run, found {}",
            more.len()
        ))),
    }
}

fn write(arguments: &ViewArguments) -> Result<(), Failure> {
    let mut page = Page::new(&title(&arguments.sources));
    let first = &arguments.sources[0];
    let is_model = arguments.sources.len() == 1 && first.join("checkpoints").is_dir();
    if is_model {
        add_model(&mut page, first, arguments)?;
    } else if folder::is_run(first) && arguments.sources.len() == 1 {
        // A run before its first checkpoint.
        folder::add(&mut page, first)?;
        page.notes.push("the run has no checkpoint yet; `--live` follows it".into());
    } else if arguments.sources.iter().all(|path| has_pictures(path)) {
        folder::add_pictures(&mut page, &arguments.sources)?;
    } else {
        let clouds = read_cloud_inputs(&arguments.sources)?;
        page.subtitle = format!("{} clouds", clouds.num_sets());
        page.add_cloud_source(&clouds);
    }
    let out = arguments.out.clone().unwrap_or_else(|| {
        if is_model { first.join("view.html") } else { PathBuf::from("view.html") }
    });
    let html = page.html();
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|error| Failure::cannot("create", parent, &error))?;
    }
    std::fs::write(&out, &html).map_err(|error| Failure::cannot("write", &out, &error))?;
    let (clouds, points) = page.num_clouds();
    let report = Report {
        rooms: page.rooms(),
        clouds,
        points,
        pictures: page.pictures.len(),
        bytes: html.len(),
        notes: page.notes.clone(),
        page: out.display().to_string(),
    };
    if arguments.common.json {
        return output::print_json(Some(arguments.seed), &report);
    }
    let text = format!(
        "{}: {} clouds of {} points together, {} pictures, {:.1} MB\n",
        report.rooms.join(", "),
        report.clouds,
        report.points,
        report.pictures,
        report.bytes as f64 / 1e6
    );
    let notes: String = report.notes.iter().map(|note| ["note  ", note, "\n"].concat()).collect();
    output::print(&format!("{text}{notes}page  {}\n", report.page))
}

/// What a model shows, and what its folder holds.
fn add_model(page: &mut Page, path: &Path, arguments: &ViewArguments) -> Result<(), Failure> {
    let model = Model::load_on(path, &device::open()?)?;
    let options = AlbumOptions {
        num_samples: arguments.count,
        num_points: arguments.points,
        prior: arguments.prior,
        stream: Stream::new(arguments.seed, "album"),
    };
    let bar = progress::clock(0, arguments.common.quiet);
    let album = album(&model, &options, &mut |what| bar.set_message(what.to_owned()))?;
    bar.finish_and_clear();
    page.subtitle = format!(
        "model of {} by {}, {} steps, ebp {}",
        model.settings().kind(),
        model.name(),
        model.step(),
        env!("CARGO_PKG_VERSION")
    );
    page.add_album(&album);
    folder::add(page, path)
}

fn has_pictures(path: &Path) -> bool {
    if !path.is_dir() {
        return is_image(path);
    }
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files = inside.map(|entry| entry.path()).filter(|path| path.is_file()).peekable();
    files.peek().is_some() && files.all(|file| is_image(&file))
}

fn title(sources: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
        whole.file_name().map(OsStr::to_string_lossy).map_or_else(String::new, Into::into)
    };
    sources.iter().map(name).collect::<Vec<String>>().join(", ")
}
