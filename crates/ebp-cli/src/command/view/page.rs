//! The page: its data as JSON inside one HTML file, with its style and its script.
//!
//! Data never become HTML: they are JSON in which `<` is written as `\u003c`, and the script puts them into
//! the page as text. The page's own policy forbids every request and every script but the one of its nonce.

use ebp::data::CloudSource;
use ebp::experiment::album::{Album, CloudAlbum, DensityAlbum, TopicWords};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::pack::{PackedClouds, base64, bounds, place};

const PAGE: &str = include_str!("assets/page.html");
const STYLE: &str = include_str!("assets/style.css");
/// In the order they need each other.
const SCRIPTS: [&str; 7] = [
    include_str!("assets/base.js"),
    include_str!("assets/spheres.js"),
    include_str!("assets/hands.js"),
    include_str!("assets/clouds.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/rooms.js"),
    include_str!("assets/main.js"),
];

/// Points and clouds of files that a page takes: two megabytes as text.
const MOST_POINTS: usize = 220_000;
const MOST_CLOUDS: usize = 4096;
/// Clouds whose sizes differ more than this are each scaled to their cell.
const LARGEST_RATIO: f32 = 4.0;

/// Everything that a page shows.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) subtitle: String,
    clouds: Option<CloudAlbum>,
    densities: Option<DensityAlbum>,
    topics: Vec<TopicWords>,
    /// `{ columns: { name: [steps, values] }, backs: [steps] }`.
    pub(super) metrics: Option<Value>,
    pub(super) pictures: Vec<Picture>,
    pub(super) numbers: Vec<Numbers>,
    /// What is missing, and why.
    pub(super) notes: Vec<String>,
    pub(super) is_live: bool,
}

/// A picture, as text of its bytes.
#[derive(Debug, Serialize)]
pub(super) struct Picture {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) width: u32,
}

/// A table of names and values.
#[derive(Debug, Serialize)]
pub(super) struct Numbers {
    pub(super) name: String,
    pub(super) rows: Vec<(String, Value)>,
}

impl Page {
    pub(super) fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            subtitle: String::new(),
            clouds: None,
            densities: None,
            topics: Vec::new(),
            metrics: None,
            pictures: Vec::new(),
            numbers: Vec::new(),
            notes: Vec::new(),
            is_live: false,
        }
    }

    /// What a model shows.
    pub(super) fn add_album(&mut self, album: &Album) {
        self.clouds.clone_from(&album.clouds);
        self.densities.clone_from(&album.densities);
        self.topics.clone_from(&album.topics);
        self.notes.extend(album.notes.iter().cloned());
    }

    /// Clouds of files, each about its own middle; as many points as a page takes.
    pub(super) fn add_cloud_source(&mut self, source: &CloudSource) {
        let dim = source.dim();
        let count = source.num_sets().min(MOST_CLOUDS);
        let most = (MOST_POINTS / count.max(1)).max(16);
        let mut clouds = Vec::with_capacity(count);
        let mut sizes = Vec::with_capacity(count);
        let mut is_thinned = false;
        for number in 0..count {
            let set = source.set(number);
            let finite = |point: &&[f32]| point.iter().all(|x| x.is_finite());
            let points: Vec<&[f32]> = set.chunks_exact(dim).filter(finite).collect();
            let kept = points.len().min(most);
            is_thinned |= kept < points.len();
            let (low, high) = bounds(points.iter().map(|point| place(point)));
            let size = (0..3).map(|axis| high[axis] - low[axis]).fold(f32::MIN_POSITIVE, f32::max);
            let of_axis = if dim < 3 { [0, 2, 1] } else { [0, 1, 2] };
            let middle =
                |axis: usize| of_axis.get(axis).map_or(0.0, |&axis| 0.5 * (low[axis] + high[axis]));
            let centred: Vec<f32> = (0..kept)
                .flat_map(|i| points[i * points.len() / kept].iter().enumerate())
                .map(|(axis, x)| x - middle(axis))
                .collect();
            sizes.push(size);
            clouds.push((source.name(number), centred));
        }
        let largest = sizes.iter().copied().fold(0.0, f32::max);
        let smallest = sizes.iter().copied().fold(f32::INFINITY, f32::min);
        let mut notes = Vec::new();
        if largest > LARGEST_RATIO * smallest {
            notes.push("Sizes differ: each cloud is scaled to its cell.".to_owned());
            for ((_, points), size) in clouds.iter_mut().zip(&sizes) {
                for x in points {
                    *x /= size;
                }
            }
        }
        if count < source.num_sets() {
            notes.push(format!("The first {count} of {}.", source.num_sets()));
        }
        if is_thinned {
            notes.push(format!("At most {most} points of each are shown."));
        }
        if dim > 3 {
            notes.push(format!("The first 3 of {dim} coordinates are shown."));
        }
        let mut album = CloudAlbum { dim, ..CloudAlbum::default() };
        album.add_group("Clouds", &notes.join(" "), clouds);
        self.clouds = Some(album);
    }

    /// Clouds and points of the page.
    pub(super) fn num_clouds(&self) -> (usize, usize) {
        self.clouds.as_ref().map_or((0, 0), |album| {
            let points = album.clouds.iter().map(|cloud| cloud.points.len()).sum::<usize>();
            (album.clouds.len(), points / album.dim.max(1))
        })
    }

    /// The tabs, in their order.
    pub(super) fn rooms(&self) -> Vec<&'static str> {
        let rooms = [
            ("clouds", self.clouds.is_some()),
            ("densities", self.densities.is_some()),
            ("topics", !self.topics.is_empty()),
            ("training", self.metrics.is_some() || self.is_live),
            ("pictures", !self.pictures.is_empty() || self.is_live),
            ("numbers", !self.numbers.is_empty()),
        ];
        rooms.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }

    fn data(&self) -> Value {
        let mut data = Map::new();
        let mut put = |name: &str, value: Value| data.insert(name.to_owned(), value);
        put("title", self.title.as_str().into());
        put("subtitle", self.subtitle.as_str().into());
        put("live", self.is_live.into());
        if let Some(album) = &self.clouds {
            put("clouds", json!(PackedClouds::new(album)));
        }
        if let Some(densities) = &self.densities {
            let mut value = json!(densities);
            value["maps"] = base64(&densities.maps).into();
            put("densities", value);
        }
        if let Some(metrics) = &self.metrics {
            put("metrics", metrics.clone());
        }
        put("topics", json!(self.topics));
        put("pictures", json!(self.pictures));
        put("numbers", json!(self.numbers));
        Value::Object(data)
    }

    /// The whole page.
    pub(super) fn html(&self) -> String {
        let (images, connections) =
            if self.is_live { ("'self' data:", "'self'") } else { ("data:", "'none'") };
        let data = self.data().to_string().replace('<', "\\u003c");
        let script = format!("\"use strict\";\n(() => {{\n{}\n}})();", SCRIPTS.join("\n"));
        let parts = [
            ("images", images),
            ("connections", connections),
            ("title", &escaped(&self.title)),
            ("style", STYLE),
            ("data", &data),
            ("script", &script),
        ];
        fill(PAGE, &parts)
    }
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => found.push_str("&amp;"),
            '<' => found.push_str("&lt;"),
            '>' => found.push_str("&gt;"),
            '"' => found.push_str("&quot;"),
            _ => found.push(letter),
        }
    }
    found
}

/// Puts the parts in the places of their `{{names}}`, once: what a part contains is no place.
fn fill(page: &str, parts: &[(&str, &str)]) -> String {
    let mut found = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("{{") {
        found.push_str(before);
        let Some((name, after)) = after.split_once("}}") else { break };
        found.push_str(parts.iter().find(|(known, _)| *known == name).map_or("", |(_, part)| part));
        rest = after;
    }
    found.push_str(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_put_in_once() {
        let parts = [("a", "{{b}}"), ("b", "x")];
        assert_eq!(fill("1 {{a}} 2 {{b}} 3", &parts), "1 {{b}} 2 x 3");
    }

    #[test]
    fn names_stay_text() {
        let mut page = Page::new("<script>alert(1)</script>");
        page.subtitle = "</script><script>alert(2)</script>".into();
        let html = page.html();
        assert!(!html.contains("alert(1)<") && !html.contains("<script>alert"));
        assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        assert!(html.contains("\\u003c/script>\\u003cscript>alert(2)"));
    }
}
