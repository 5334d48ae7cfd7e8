//! Moving pictures as APNG: a PNG that shows its first frame where the rest is not understood.
//!
//! Frames are drawn, packed and written one after the other, so that memory is that of one.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use image::RgbaImage;

use super::camera::{Frame, View};
use super::sheet::{Sheet, frames};
use super::{LONGEST_SIDE, RenderOptions};
use crate::{Error, Result};

/// The most frames of an animation.
pub const MOST_FRAMES: usize = 2000;

/// The frames of one turn around the vertical, the lamp going with the eye; every panel keeps its frame.
pub fn turntable<'a>(
    sheet: &'a Sheet,
    options: &'a RenderOptions,
    count: usize,
    is_common: bool,
    done: &'a (dyn Fn() + Sync),
) -> impl Iterator<Item = Result<RgbaImage>> + 'a {
    let start = options.view.azimuth;
    let azimuths: Vec<f32> =
        (0..count).map(|number| start + 360.0 * number as f32 / count as f32).collect();
    let found: Vec<Frame> = frames(std::slice::from_ref(sheet), options, &azimuths, is_common);
    azimuths.into_iter().map(move |azimuth| {
        let options = RenderOptions { view: View { azimuth, ..options.view }, ..*options };
        sheet.draw(&options, &found, done)
    })
}

/// Writes frames of one size that are shown for `milliseconds` each, again and again.
///
/// # Errors
///
/// [`Error::InvalidValue`] for no frames or too many, [`Error::Failed`] if the file cannot be written,
/// and those of the frames.
pub fn write_animation(
    path: &Path,
    size: [u32; 2],
    count: usize,
    milliseconds: u16,
    frames: impl Iterator<Item = Result<RgbaImage>>,
) -> Result<()> {
    if !(1..=MOST_FRAMES).contains(&count) {
        return Err(Error::invalid("frames", format!("from 1 to {MOST_FRAMES}"), count));
    }
    if !size.iter().all(|side| (1..=LONGEST_SIDE).contains(side)) {
        return Err(Error::invalid(
            "size",
            format!("up to {LONGEST_SIDE} pixels"),
            format!("{size:?}"),
        ));
    }
    let failed = |error: png::EncodingError| {
        Error::failed(format!("cannot write `{}`: {error}", path.display()))
            .with_help("is there room on the disk?")
    };
    let file = File::create(path).map_err(Error::io("write", path))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), size[0], size[1]);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_animated(u32::try_from(count).unwrap_or(1), 0).map_err(failed)?;
    encoder.set_frame_delay(milliseconds, 1000).map_err(failed)?;
    let mut writer = encoder.write_header().map_err(failed)?;
    let mut number = 0;
    for frame in frames {
        writer.write_image_data(frame?.as_raw()).map_err(failed)?;
        number += 1;
    }
    if number != count {
        return Err(Error::failed(format!("expected {count} frames, found {number}")));
    }
    writer.finish().map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::super::scene::{Placement, Scene, Up};
    use super::super::sheet::Panel;
    use super::*;

    #[test]
    fn an_animation_has_all_its_frames() -> Result<()> {
        let points = [0.0, 0.0, 0.0, 0.6, 0.0, 0.0, 0.0, 0.0, 0.5];
        let placement = Placement::around(&[&points], 3, Up::Z)?;
        let scene = Scene::new(&points, 3, &placement, vec![[200, 80, 60]], Some(0.2))?;
        let panel = Panel { scene, label: String::new() };
        let sheet = Sheet { panels: vec![panel], columns: 1, key: None };
        let options = RenderOptions { size: [40, 30], ..RenderOptions::default() };
        let path = std::env::temp_dir().join(format!("ebp-turn-{}.png", std::process::id()));
        let frames = turntable(&sheet, &options, 5, false, &|| ());
        write_animation(&path, [40, 30], 5, 50, frames)?;
        let file = File::open(&path).map_err(Error::io("read", &path))?;
        let mut reader = png::Decoder::new(BufReader::new(file)).read_info().expect("a PNG");
        let control = reader.info().animation_control.expect("an animation");
        assert_eq!((control.num_frames, control.num_plays), (5, 0));
        let mut seen = Vec::new();
        for _ in 0..5 {
            let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
            reader.next_frame(&mut pixels).expect("a frame");
            seen.push(pixels);
        }
        assert!(reader.next_frame(&mut vec![0; 40 * 30 * 4]).is_err());
        seen.dedup();
        assert_eq!(seen.len(), 5, "it turns");
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        let none = || std::iter::empty::<Result<RgbaImage>>();
        assert!(write_animation(&path, [40, 30], 0, 50, none()).is_err());
        assert!(write_animation(&path, [0, 30], 2, 50, none()).is_err());
        Ok(())
    }
}
