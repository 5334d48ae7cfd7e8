//! Scenes as SVG: a circle with a gradient for each sphere that is seen, far ones first, on a picture of
//! their shadow.
//!
//! A circle's gradient goes from the light it gets at its brightest to that at its rim, both from the
//! same lighting as pictures have, at the middle of what is seen of it. Gradients are shared by
//! spheres whose colours differ by less than a twentieth. What spheres hide of each other follows from
//! their order, so touching spheres overlap where a picture would cut them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Cursor;

use image::{ImageFormat, RgbaImage};
use rayon::prelude::*;

use super::super::letters::CAPITAL;
use super::super::svg::{FONTS, base64, escaped, hexadecimal};
use super::camera::{Camera, Frame, Lens, frame_of};
use super::light::Light;
use super::paint::mapped;
use super::picture::{self, encoded, linear, reflected};
use super::scene::Scene;
use super::sheet::{Key, Layout, Sheet};
use super::space::{add, ahead, unit};
use super::spheres::{Bands, NOTHING};
use super::{Background, RenderOptions};
use crate::{Error, Result};

/// The most circles of a file: some 80 bytes each.
pub const MOST_CIRCLES: usize = 100_000;
/// Side of the picture by which hidden spheres are found, and of the shadow, in pixels.
const PROBE: u32 = 1600;
const SHADOW: u32 = 480;
/// Steps of a colour channel among gradients.
const STEPS: f32 = 24.0;

/// A sheet as the text of an SVG file, as large in its units as the picture would be in pixels.
///
/// # Errors
///
/// [`Error::InvalidValue`] for options that cannot be drawn, [`Error::Refused`] if more than
/// [`MOST_CIRCLES`] spheres are seen.
pub fn render_svg(sheet: &Sheet, options: &RenderOptions, frames: &[Frame]) -> Result<String> {
    let layout = sheet.layout(options)?;
    let mut gradients = BTreeMap::new();
    let mut body = String::new();
    let mut num_circles = 0;
    for (number, panel) in sheet.panels.iter().enumerate() {
        let [left, top] = layout.corner(number);
        let frame = frames.get(number).copied();
        write(&mut body, &format!("<g transform=\"translate({left} {top})\">\n"));
        num_circles += circles(&panel.scene, options, frame, &mut gradients, &mut body)?;
        body.push_str("</g>\n");
        if num_circles > MOST_CIRCLES {
            let message = format!("expected at most {MOST_CIRCLES} visible spheres, found more");
            let help = "draw fewer clouds with `--count`, fewer points, or a .png";
            return Err(Error::refused(message).with_help(help));
        }
    }
    let ink = hexadecimal(options.background.ink());
    for (number, panel) in sheet.panels.iter().enumerate() {
        text(&mut body, &panel.label, layout.label_of(number), &layout, "middle", &ink);
    }
    let mut definitions = String::new();
    if let Some(key) = &sheet.key {
        draw_key(key, &layout, &ink, &mut definitions, &mut body);
    }
    for ([light, rim], name) in gradients {
        let [light, rim] = [light, rim].map(|steps: [u8; 3]| {
            hexadecimal(steps.map(|step| (f32::from(step) * 255.0 / STEPS).round() as u8))
        });
        write(
            &mut definitions,
            &format!(
                "<radialGradient id=\"g{name}\" cx=\".4\" cy=\".34\" r=\".72\"><stop stop-color=\"{light}\"/>\
             <stop offset=\"1\" stop-color=\"{rim}\"/></radialGradient>\n"
            ),
        );
    }
    let (width, height) = (layout.width(), layout.height());
    let behind = options.background.colour().map_or(String::new(), |colour| {
        format!("<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n", hexadecimal(colour))
    });
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
         width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <defs>\n{definitions}</defs>\n{behind}{body}</svg>\n"
    ))
}

/// The shadow and the circles of a scene; returns how many.
fn circles(
    scene: &Scene,
    options: &RenderOptions,
    frame: Option<Frame>,
    gradients: &mut BTreeMap<[[u8; 3]; 2], usize>,
    body: &mut String,
) -> Result<usize> {
    let view = options.view_of(scene);
    let frame = frame.unwrap_or_else(|| frame_of(scene, &view, options.shadow_of(scene, &view)));
    if options.has_ground && !scene.is_flat {
        let picture = shadow(scene, options, frame)?;
        let [width, height] = options.size;
        write(
            body,
            &format!(
                "<image width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
             xlink:href=\"data:image/png;base64,{picture}\"/>\n"
            ),
        );
    }
    let camera = Camera::new(&view, scene.reach);
    let [width, height] = options.size;
    let probe = scaled(options.size, PROBE);
    let lens = Lens::new(frame, probe[0], probe[1]);
    let bands = Bands::new(scene, &camera, lens, probe, 32);
    // The sum of the directions in which a sphere is seen, where it is.
    let parts: Vec<Vec<(u32, [f32; 3])>> = (0..bands.len())
        .into_par_iter()
        .map(|band| {
            let first = bands.rows(band).start;
            let hits = bands.draw(band);
            let seen = hits.iter().enumerate().filter(|(_, hit)| hit.sphere != NOTHING);
            seen.map(|(index, hit)| {
                let (row, column) = (index as u32 / probe[0], index as u32 % probe[0]);
                (hit.sphere, bands.outwards(*hit, column, first + row))
            })
            .collect()
        })
        .collect();
    let mut seen = vec![[0.0; 3]; scene.centres.len()];
    for (sphere, outwards) in parts.into_iter().flatten() {
        seen[sphere as usize] = add(seen[sphere as usize], outwards);
    }
    let fineness = options.quality.fineness(scene, options.size);
    let light = Light::new(scene, &options.lamp, view.azimuth, &fineness);
    let lens = Lens::new(frame, width, height);
    let towards_lamp = options.lamp.direction(view.azimuth);
    let mut order: Vec<(f32, usize)> = (0..scene.centres.len())
        .filter(|&sphere| seen[sphere].iter().any(|number| number.abs() > 0.0))
        .map(|sphere| (camera.seen(scene.centres[sphere])[2], sphere))
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for &(depth, sphere) in &order {
        let centre = scene.centres[sphere];
        let towards_eye = unit(camera.to_world(seen[sphere]));
        let bright = unit(add(towards_eye, towards_lamp));
        let [mut own, mut rim] = [[0; 3]; 2];
        let colour = scene.colour(sphere).map(linear);
        let place = ahead(centre, scene.radius, towards_eye);
        let [_, open] = light.at(place, towards_lamp);
        let [sky, _] = light.at(place, bright);
        let [low_sky, _] = light.at(place, towards_eye);
        for channel in 0..3 {
            let step = |light: f32| (encoded(light.clamp(0.0, 1.0)) * STEPS).round() as u8;
            own[channel] = step(reflected(colour[channel], sky, open));
            rim[channel] = step(reflected(colour[channel], 0.72 * low_sky, 0.3 * open));
        }
        let next = gradients.len();
        let name = *gradients.entry([own, rim]).or_insert(next);
        let [x, y, _] = camera.seen(centre);
        let (x, y) = (lens.sample(0, x / depth), lens.sample(1, y / depth));
        let radius =
            scene.radius / (depth * depth - scene.radius * scene.radius).sqrt() / lens.step;
        write(
            body,
            &format!(
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.2}\" fill=\"url(#g{name})\"/>\n"
            ),
        );
    }
    Ok(order.len())
}

/// The shape of `size` with its longest side of at most `most` pixels.
fn scaled(size: [u32; 2], most: u32) -> [u32; 2] {
    let factor = f64::from(most) / f64::from(size[0].max(size[1]));
    size.map(|side| (f64::from(side) * factor).round().max(1.0) as u32)
}

/// The ground alone, transparent, in base 64.
fn shadow(scene: &Scene, options: &RenderOptions, frame: Frame) -> Result<String> {
    let size = scaled(options.size, SHADOW.min(options.size[0].max(options.size[1])));
    let options = RenderOptions { size, background: Background::Transparent, ..*options };
    let picture: RgbaImage = picture::draw_ground(scene, &options, frame);
    let mut bytes = Cursor::new(Vec::new());
    picture
        .write_to(&mut bytes, ImageFormat::Png)
        .map_err(|error| Error::failed(format!("cannot pack the shadow: {error}")))?;
    Ok(base64(bytes.get_ref()))
}

fn draw_key(key: &Key, layout: &Layout, ink: &str, definitions: &mut String, body: &mut String) {
    match key {
        Key::Bar { map, range, name } => {
            let [left, top, width, height] = layout.bar();
            definitions
                .push_str("<linearGradient id=\"scale\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">");
            for step in 0..=18 {
                let share = f64::from(step) / 18.0;
                let colour = hexadecimal(mapped(*map, share));
                write(
                    definitions,
                    &format!("<stop offset=\"{share:.3}\" stop-color=\"{colour}\"/>"),
                );
            }
            definitions.push_str("</linearGradient>\n");
            write(
                body,
                &format!(
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                 fill=\"url(#scale)\"/>\n"
                ),
            );
            for (place, label) in Key::ticks(*range) {
                let y = top + place * height;
                let (x, end) = (left + width, left + width + 0.5 * layout.text);
                write(
                    body,
                    &format!(
                        "<path d=\"M{x:.1} {y:.1}H{end:.1}\" stroke=\"{ink}\" stroke-width=\"{:.1}\"/>\n",
                        0.12 * layout.text
                    ),
                );
                text(body, &label, [x + 0.9 * layout.text, y], layout, "start", ink);
            }
            text(body, name, [left, top - 1.6 * layout.text], layout, "start", ink);
        }
        Key::Words(words) => {
            for (number, (word, colour)) in words.iter().enumerate() {
                let [left, top, side] = layout.square(number, words.len());
                write(
                    body,
                    &format!(
                        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{side:.1}\" height=\"{side:.1}\" \
                     fill=\"{}\"/>\n",
                        hexadecimal(*colour)
                    ),
                );
                let place = [left + 1.6 * side, top + 0.5 * side];
                text(body, word, place, layout, "start", ink);
            }
        }
    }
}

fn text(
    body: &mut String,
    words: &str,
    [x, y]: [f64; 2],
    layout: &Layout,
    anchor: &str,
    ink: &str,
) {
    if words.is_empty() {
        return;
    }
    let size = layout.text / CAPITAL;
    let y = y + 0.5 * layout.text;
    write(
        body,
        &format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-family=\"{FONTS}\" \
         font-size=\"{size:.1}\" text-anchor=\"{anchor}\" fill=\"{ink}\">{}</text>\n",
            escaped(words)
        ),
    );
}

/// Writing to a string cannot fail.
fn write(to: &mut String, text: &str) {
    let _ = to.write_str(text);
}
