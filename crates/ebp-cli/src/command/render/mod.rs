//! `ebp render`: clouds as shaded spheres.

mod arguments;
mod sheets;

use std::path::Path;
use std::time::Instant;

use ebp::figure::render::{
    Frame, Lamp, MOST_FRAMES, RenderOptions, Sheet, View, frames, render_svg, turntable,
    write_animation,
};
use ebp::figure::save_rgba;
use miette::miette;
use serde::Serialize;

pub(crate) use self::arguments::RenderArguments;
use crate::args::name_of;
use crate::failure::Failure;
use crate::{output, progress};

#[derive(Debug, Serialize)]
struct Report {
    out: String,
    width: u32,
    height: u32,
    clouds: usize,
    /// Of all clouds that are drawn.
    points: usize,
    /// 1 unless it moves.
    frames: usize,
    quality: &'static str,
    bytes: u64,
    seconds: f64,
}

/// What the file's ending asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Picture,
    Drawing,
    Animation,
}

/// Draws, writes and reports.
pub(crate) fn run(arguments: &RenderArguments) -> Result<(), Failure> {
    arguments.common.install(|| draw(arguments))
}

fn draw(arguments: &RenderArguments) -> Result<(), Failure> {
    let started = Instant::now();
    let format = format_of(arguments)?;
    let moves = format == Format::Animation;
    let (sheets, places_alike) = sheets::read(arguments, moves)?;
    let options = options_of(arguments, sheets.first().map_or(1, |sheet| sheet.panels.len()));
    let Some(first) = sheets.first() else {
        return Err(Failure::Usage(miette!("expected at least one cloud, found none")));
    };
    let size = first.size(&options)?;
    let num_frames = if moves { arguments.turntable.unwrap_or(sheets.len()) } else { 1 };
    if num_frames > MOST_FRAMES {
        return Err(Failure::Usage(miette!(
            help = "draw fewer with `--count` or `--turntable`",
            "expected at most {MOST_FRAMES} frames, found {num_frames}"
        )));
    }
    let panels = first.panels.len() * num_frames;
    // Of every frame.
    let count = progress::count(panels as u64, arguments.common.quiet, "clouds");
    let done = || count.inc(1);
    let azimuths = [options.view.azimuth];
    let fit =
        |sheets: &[Sheet]| -> Vec<Frame> { frames(sheets, &options, &azimuths, places_alike) };
    match format {
        Format::Picture => {
            let picture = first.draw(&options, &fit(&sheets), &done)?;
            save_rgba(picture, &arguments.out)?;
        }
        Format::Drawing => {
            make_folder(&arguments.out)?;
            let text = render_svg(first, &options, &fit(&sheets))?;
            std::fs::write(&arguments.out, text)
                .map_err(|error| Failure::cannot("write", &arguments.out, &error))?;
        }
        Format::Animation => {
            make_folder(&arguments.out)?;
            let time = arguments.frame_time;
            if let Some(count) = arguments.turntable {
                let frames = turntable(first, &options, count, places_alike, &done);
                write_animation(&arguments.out, size, count, time, frames)?;
            } else {
                let found = fit(&sheets);
                let frames = sheets.iter().map(|sheet| sheet.draw(&options, &found, &done));
                write_animation(&arguments.out, size, sheets.len(), time, frames)?;
            }
        }
    }
    count.finish();
    let points = first.panels.iter().map(|panel| panel.scene.len()).sum();
    let report = Report {
        out: arguments.out.display().to_string(),
        width: size[0],
        height: size[1],
        clouds: first.panels.len(),
        points,
        frames: num_frames,
        quality: name_of(arguments::QUALITIES, &arguments.quality),
        bytes: std::fs::metadata(&arguments.out).map_or(0, |data| data.len()),
        seconds: started.elapsed().as_secs_f64(),
    };
    if arguments.common.json {
        return output::print_json(None, &report);
    }
    let frames = if moves { format!(", {num_frames} frames") } else { String::new() };
    output::print(&format!(
        "{} × {} pixels{frames}, {} of {points} points, {:.2} MB in {:.1} s\npicture: {}\n",
        report.width,
        report.height,
        if report.clouds == 1 {
            "one cloud".to_owned()
        } else {
            format!("{} clouds", report.clouds)
        },
        report.bytes as f64 / 1e6,
        report.seconds,
        report.out
    ))?;
    arguments.common.show([arguments.out.as_path()])
}

fn make_folder(out: &Path) -> Result<(), Failure> {
    match out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => std::fs::create_dir_all(folder)
            .map_err(|error| Failure::cannot("make the folder", folder, &error)),
        None => Ok(()),
    }
}

fn format_of(arguments: &RenderArguments) -> Result<Format, Failure> {
    let ending = arguments.out.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let moves = arguments.turntable.is_some();
    match (ending.as_str(), moves) {
        ("png", false) => Ok(Format::Picture),
        ("svg", false) => Ok(Format::Drawing),
        ("png" | "apng", true) => Ok(Format::Animation),
        ("apng", false) if arguments.steps => Ok(Format::Animation),
        ("apng", false) => Err(Failure::Usage(miette!(
            help = "`--turntable 60` turns the cloud, `--steps` shows clouds one after the other",
            "an .apng moves: expected `--turntable` or `--steps`, found neither"
        ))),
        (_, true) => Err(Failure::Usage(miette!(
            help = "name a file ending in .apng",
            "a turn needs a picture that moves, found `{}`",
            arguments.out.display()
        ))),
        _ => Err(Failure::Usage(miette!(
            help = "the ending says what is drawn: .png, .svg or .apng",
            "expected an output ending in .png, .svg or .apng, found `{}`",
            arguments.out.display()
        ))),
    }
}

fn options_of(arguments: &RenderArguments, num_panels: usize) -> RenderOptions {
    let size = if num_panels > 1 { [400, 400] } else { [1024, 1024] };
    // Frames by the dozen are smaller.
    let moves = arguments.turntable.is_some() || arguments.steps;
    let size = if moves && num_panels == 1 { [480, 480] } else { size };
    RenderOptions {
        size: arguments.size.unwrap_or(size),
        view: View {
            azimuth: arguments.azimuth,
            elevation: arguments.elevation,
            opening: arguments.field_of_view,
            distance: arguments.distance,
        },
        lamp: Lamp {
            azimuth: arguments.light[0],
            elevation: arguments.light[1],
            softness: arguments.softness,
        },
        background: arguments.background,
        has_ground: !arguments.no_ground,
        quality: arguments.quality,
    }
}
