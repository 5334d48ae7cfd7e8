//! Drawings as SVG: lines, polygons and text as such, pixels as pictures inside.
//!
//! Text stays text. Its letters are those of Arimo, or of Arial and its like, which are as wide; `textLength`
//! keeps the width where a reader's program has neither.

use std::fmt::Write as _;

use image::RgbImage;

use super::drawing::{Anchor, Area, Drawing, Mark, Paint, text_width};
use super::letters;
use super::theme::{Colour, Theme};
use super::write::encoded;
use crate::Result;

/// Fonts with letters as wide as those that were measured.
pub(super) const FONTS: &str = "Arimo,Arial,Liberation Sans,Helvetica,sans-serif";

/// The text of the file.
pub(super) fn write(drawing: &Drawing, theme: Theme) -> Result<String> {
    let [width, height] = drawing.size().map(number);
    let mut page = Page { theme, body: String::new() };
    let paper = hexadecimal(Colour::Paper.under(theme).0);
    page.add(&format!("<rect width=\"{width}\" height=\"{height}\" fill=\"{paper}\"/>\n"));
    for mark in &drawing.marks {
        page.draw(mark)?;
    }
    let ink = hexadecimal(Colour::Ink.under(theme).0);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" \
         width=\"{width}pt\" height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"{FONTS}\" fill=\"{ink}\">\n{}</svg>\n",
        page.body
    ))
}

struct Page {
    theme: Theme,
    body: String,
}

impl Page {
    /// Writing to a string cannot fail.
    fn add(&mut self, text: &str) {
        let _ = self.body.write_str(text);
    }

    fn colour(&self, colour: Colour) -> String {
        hexadecimal(colour.under(self.theme).0)
    }

    /// A colour as the attribute `name`, with its opacity.
    fn paint(&self, name: &str, paint: Paint) -> String {
        let colour = self.colour(paint.colour);
        if paint.opacity < 1.0 {
            return format!("{name}=\"{colour}\" {name}-opacity=\"{}\"", number(paint.opacity));
        }
        format!("{name}=\"{colour}\"")
    }

    fn border(&self, (width, colour): (f64, Colour)) -> String {
        if width <= 0.0 {
            return String::new();
        }
        format!(" stroke=\"{}\" stroke-width=\"{}\"", self.colour(colour), number(width))
    }

    fn draw(&mut self, mark: &Mark) -> Result<()> {
        let text = match mark {
            Mark::Fill { area, paint } => {
                format!("<rect {} {}/>\n", sides(*area), self.paint("fill", *paint))
            }
            Mark::Rule { ends, width, colour } => {
                format!("<path d=\"{}\"{}/>\n", path(ends), self.border((*width, *colour)))
            }
            Mark::Lines { lines, width, paint, dash } => {
                let dashes: Vec<String> = dash.iter().copied().map(number).collect();
                let dashes = if dashes.is_empty() {
                    String::new()
                } else {
                    format!(" stroke-dasharray=\"{}\"", dashes.join(" "))
                };
                format!(
                    "<path d=\"{}\" fill=\"none\" {} stroke-width=\"{}\" stroke-linecap=\"round\" \
                     stroke-linejoin=\"round\"{dashes}/>\n",
                    lines.iter().map(|line| path(line)).collect::<String>(),
                    self.paint("stroke", *paint),
                    number(*width)
                )
            }
            Mark::Polygon { contour, paint, border } => format!(
                "<path d=\"{}Z\" {}{}/>\n",
                path(contour),
                self.paint("fill", *paint),
                self.border(*border)
            ),
            Mark::Dot { centre: [x, y], radius, colour, border } => format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"{}/>\n",
                number(*x),
                number(*y),
                // The border of a dot lies inside its edge, a stroke lies on it.
                number(radius - 0.5 * border.0),
                self.colour(*colour),
                self.border(*border)
            ),
            Mark::Picture { area, pixels, is_smooth } => {
                let style = if *is_smooth { "" } else { " style=\"image-rendering:pixelated\"" };
                format!(
                    "<image {} preserveAspectRatio=\"none\"{style} xlink:href=\"{}\"/>\n",
                    sides(*area),
                    data_of(pixels)?
                )
            }
            Mark::Text { words, place, size, anchor, is_upwards } => {
                text(words, *place, *size, (*anchor, *is_upwards))
            }
        };
        self.add(&text);
        Ok(())
    }
}

fn sides(area: Area) -> String {
    let Area { left, top, width, height } = area;
    let [x, y, width, height] = [left, top, width, height].map(number);
    format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

/// Straight lines from point to point.
fn path(points: &[[f64; 2]]) -> String {
    let step = |(index, [x, y]): (usize, &[f64; 2])| {
        let letter = if index == 0 { 'M' } else { 'L' };
        format!("{letter}{} {}", number(*x), number(*y))
    };
    points.iter().enumerate().map(step).collect()
}

fn text(words: &str, [x, y]: [f64; 2], size: f64, (anchor, is_upwards): (Anchor, bool)) -> String {
    let how = match anchor {
        Anchor::Left => "",
        Anchor::Centre => " text-anchor=\"middle\"",
        Anchor::Right => " text-anchor=\"end\"",
    };
    // Text stands on a line, half of a capital below the middle of its capitals.
    let below = 0.5 * letters::CAPITAL * size;
    let place = if is_upwards {
        format!("transform=\"translate({} {}) rotate(-90)\"", number(x + below), number(y))
    } else {
        format!("x=\"{}\" y=\"{}\"", number(x), number(y + below))
    };
    format!(
        "<text {place} font-size=\"{}\"{how} textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\">{}</text>\n",
        number(size),
        number(text_width(words, size)),
        escaped(words)
    )
}

/// Hundredths of a point are finer than any printer.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A picture as an address that holds it.
fn data_of(pixels: &RgbImage) -> Result<String> {
    Ok(format!("data:image/png;base64,{}", base64(&encoded(pixels, None)?)))
}

/// Text as XML has it, without what XML cannot hold.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => safe.push('?'),
            _ if character.is_control() => safe.push(' '),
            _ => safe.push(character),
        }
    }
    safe
}

pub(super) fn hexadecimal([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// RFC 4648: three bytes are four letters.
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0_u32, |number, index| {
            number << 8 | u32::from(three.get(index).copied().unwrap_or(0))
        });
        for index in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * index) & 63) as usize];
            text.push(if index <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use image::Rgb;

    use super::*;

    /// The words of an SVG file; panics unless it is well-formed XML: elements are closed in order,
    /// attributes are quoted, and there is nothing but names, entities and text.
    pub(in crate::figure) fn words(svg: &str) -> Vec<String> {
        let (mut open, mut words, mut rest) = (Vec::new(), Vec::new(), svg.trim_end());
        while !rest.is_empty() {
            let (text, after) = rest.split_once('<').expect("text after the last element");
            if !text.trim().is_empty() {
                assert!(!open.is_empty() && !text.contains('>'), "stray text {text:?}");
                for entity in text.split('&').skip(1) {
                    let known = ["amp;", "lt;", "gt;"].iter().any(|name| entity.starts_with(name));
                    assert!(known, "&{entity}");
                }
                let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
                words.push(text.trim().to_owned());
            }
            let (tag, after) = after.split_once('>').expect("an element that ends");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name));
            } else {
                let (tag, is_closed) =
                    tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
                let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
                assert!(name.chars().all(char::is_alphabetic), "<{tag}>");
                let mut seen = Vec::new();
                let mut left = attributes.trim();
                while !left.is_empty() {
                    let (key, value) = left.split_once("=\"").expect("a quoted value");
                    let is_name = |c: char| c.is_ascii_alphabetic() || c == '-' || c == ':';
                    assert!(!key.is_empty() && key.chars().all(is_name), "{key}");
                    assert!(!seen.contains(&key), "{key} twice in <{tag}>");
                    seen.push(key);
                    let (value, next) = value.split_once('"').expect("a quote that ends");
                    assert!(!value.contains(['<', '&']), "{key}");
                    // What is packed may spell anything.
                    let is_number = value.starts_with("data:") || !value.contains("NaN");
                    assert!(is_number, "{key}=\"{value}\"");
                    left = next.trim_start();
                }
                if !is_closed {
                    open.push(name.to_owned());
                }
            }
            rest = after;
        }
        assert!(open.is_empty(), "open: {open:?}");
        words
    }

    /// The examples of RFC 4648.
    #[test]
    fn base64_as_its_rfc_has_it() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn texts_are_safe() {
        assert_eq!(escaped("a<b> & c\u{7}"), "a&lt;b&gt; &amp; c ");
        assert_eq!([0.0, -0.001, 12.5, 3.456_78].map(number), ["0", "0", "12.5", "3.46"]);
    }

    #[test]
    fn every_mark_is_well_formed_and_stands_where_it_was_put() {
        let area = Area { left: 10.0, top: 20.0, width: 30.0, height: 40.0 };
        let mut drawing = Drawing::new(100.0, 80.0);
        drawing.fill(area, Paint { colour: Colour::Ink, opacity: 0.25 });
        drawing.outline(area, 0.5, Colour::Grid);
        let line = [[10.0, 20.0], [25.5, 30.25], [40.0, 60.0]];
        drawing.polyline(&line, 1.25, (Colour::Ink, &[3.0, 2.0]), area);
        drawing.polygon(&line, Colour::Fixed(Rgb([1, 2, 3])), area);
        drawing.dot([20.0, 30.0], 2.0, Colour::Paper, (0.5, Colour::Ink), area);
        drawing.picture(area, RgbImage::new(2, 3), false);
        drawing.text("p(x | t) < 1 & θ − 2", [50.0, 40.0], 8.0, Anchor::Centre);
        drawing.text_upwards("density", [5.0, 40.0], 8.0, Anchor::Left);
        let svg = write(&drawing, Theme::Light).expect("a file");
        assert_eq!(words(&svg), ["p(x | t) < 1 & θ − 2", "density"]);
        for part in [
            "viewBox=\"0 0 100 80\"",
            "<rect x=\"10\" y=\"20\" width=\"30\" height=\"40\" fill=\"#1c1c1e\" fill-opacity=\"0.25\"/>",
            "M10 20L25.5 30.25L40 60\" fill=\"none\"",
            "stroke-dasharray=\"3 2\"",
            "<circle cx=\"20\" cy=\"30\" r=\"1.75\" fill=\"#ffffff\" stroke=\"#1c1c1e\"",
            "style=\"image-rendering:pixelated\"",
            // Half of capitals of 8 points, 2.75, below the place.
            "<text x=\"50\" y=\"42.75\" font-size=\"8\" text-anchor=\"middle\"",
            "translate(7.75 40) rotate(-90)",
        ] {
            assert!(svg.contains(part), "{part}\n{svg}");
        }
        let dark = write(&drawing, Theme::Dark).expect("a file");
        assert!(dark.contains("#181a1f") && dark.contains("#010203") && !dark.contains("#1c1c1e"));
    }
}
