//! What pictures must show, against closed forms and against each other.

use rayon::ThreadPoolBuilder;

use super::camera::{Camera, frame_of};
use super::light::{Fineness, LAMP, Light, SKY};
use super::space::{Vector, towards};
use super::*;

/// A look straight ahead along +y from far away, on nothing but the spheres.
fn plain(size: u32) -> RenderOptions {
    RenderOptions {
        size: [size, size],
        view: View { azimuth: -90.0, elevation: 0.0, opening: 10.0, distance: None },
        has_ground: false,
        background: Background::Transparent,
        ..RenderOptions::default()
    }
}

fn scene(points: &[f32], colours: Vec<[u8; 3]>, radius: f32) -> Scene {
    let placement = Placement::around(&[points], 3, Up::Z).expect("points");
    Scene::new(points, 3, &placement, colours, Some(radius)).expect("a scene")
}

fn fineness() -> Fineness {
    Fineness { sky: 200, lamp: 200, map_side: 256, ground_side: 128, ground: 400 }
}

/// Blocks of points on a grid of spacing `step`.
fn slab(half: f32, height: f32, step: f32) -> Vec<f32> {
    let count = (2.0 * half / step).round() as usize;
    let at = |index: usize| -half + step * index as f32;
    (0..=count).flat_map(|i| (0..=count).flat_map(move |j| [at(i), at(j), height])).collect()
}

fn coverage(picture: &RgbaImage) -> f64 {
    picture.pixels().map(|pixel| f64::from(pixel[3]) / 255.0).sum()
}

/// A fitted sphere's silhouette is the disc between its tangents: it fills 1 − 2 · 0.04 of the side.
#[test]
fn a_silhouette_has_the_area_of_its_disc() -> Result<()> {
    let size = 200;
    let picture = render(&scene(&[0.0; 3], vec![[200; 3]], 0.5), &plain(size))?;
    let radius = 0.5 * 0.92 * f64::from(size);
    let expected = std::f64::consts::PI * radius * radius;
    // Edges are right to a fraction of a sample: a quarter of a sample all around.
    let tolerance = 2.0 * std::f64::consts::PI * radius * 0.125;
    let found = coverage(&picture);
    assert!((found - expected).abs() < tolerance, "{found} for {expected}");
    Ok(())
}

/// Two spheres far from each other, seen from the side: twice the area of one of the same size.
#[test]
fn two_silhouettes_have_twice_the_area() -> Result<()> {
    let options = plain(300);
    let pair = scene(&[-1.0, 0.0, 0.0, 1.0, 0.0, 0.0], vec![[200; 3]], 0.25);
    let picture = render(&pair, &options)?;
    // From −1.25 to 1.25 across 0.92 · 300 pixels; perspective at 10° adds less than a hundredth.
    let per_unit = 0.92 * 300.0 / 2.5;
    let expected = 2.0 * std::f64::consts::PI * (0.25_f64 * per_unit).powi(2);
    let found = coverage(&picture);
    assert!((found - expected).abs() < 0.02 * expected, "{found} for {expected}");
    Ok(())
}

#[test]
fn what_is_near_hides_what_is_far() -> Result<()> {
    // The eye looks along +y: the sphere at y = −1 is near.
    for order in [[0, 1], [1, 0]] {
        let places = [[0.0, -1.0, 0.0], [0.0, 1.0, 0.0]];
        let colours = [[255, 0, 0], [0, 0, 255]];
        let points: Vec<f32> = order.iter().flat_map(|&index| places[index]).collect();
        let colours = order.iter().map(|&index| colours[index]).collect();
        let picture = render(&scene(&points, colours, 0.4), &plain(60))?;
        let middle = picture.get_pixel(30, 30);
        assert!(middle[0] > 60 && middle[2] < 10, "{middle:?}");
    }
    Ok(())
}

/// In the open, what faces the sky gets all of it, and what faces the lamp all of that.
#[test]
fn nothing_shades_a_lone_sphere() {
    let alone = scene(&[0.0; 3], vec![[200; 3]], 0.1);
    let lamp = Lamp { softness: 0.0, ..Lamp::default() };
    let light = Light::new(&alone, &lamp, 0.0, &fineness());
    let [sky, _] = light.at([0.0, 0.0, 0.1], [0.0, 0.0, 1.0]);
    assert!((sky - 1.0).abs() < 0.01, "{sky}");
    let ahead = lamp.direction(0.0);
    let [_, direct] = light.at(ahead.map(|number| 0.1 * number), ahead);
    assert!((direct - 1.0).abs() < 1e-3, "{direct}");
    let behind = ahead.map(|number| -number);
    assert!(light.at(behind.map(|number| 0.1 * number), behind)[1] <= 0.0);
}

/// Far from everything the ground is as light as paper; a sphere of radius r, its centre h above, takes
/// the share r²/h² of the sky's light from the ground below it: ∫ cos over its disc, sin² of its half angle.
#[test]
fn the_ground_is_shaded_by_the_form_factor_of_a_sphere() {
    // Two spheres: a tiny one sets the floor, far to the side of the other.
    let mut points = vec![0.0, 0.0, 0.0, 0.9, 0.0, -0.45];
    points.extend([-0.9, 0.0, 0.45]);
    let spheres = scene(&points, vec![[200; 3]], 0.12);
    let eye = [0.0, 0.0, 4.0];
    let lamp = Lamp { elevation: 90.0, softness: 5.0, ..Lamp::default() };
    let light = Light::new(&spheres, &lamp, 0.0, &Fineness { ground: 4000, ..fineness() });
    let far: Vector = [0.0, 30.0, -4.0];
    assert_eq!(light.ground(eye, far, 1.0), Some(1.0));
    assert_eq!(light.ground(eye, [0.0, 0.0, 1.0], 1.0), None);
    // Below the sphere in the middle: the lamp is hidden, the sky is not, save r²/h² and the little
    // that the other two take.
    let high = f64::from(-spheres.floor);
    let radius = f64::from(spheres.radius);
    let expected = f64::from(SKY) / f64::from(SKY + LAMP) * (1.0 - (radius / high).powi(2));
    let found = f64::from(light.ground(eye, [0.0, 0.0, -1.0], 1.0).expect("ground"));
    assert!((found - expected).abs() < 0.03, "{found} for {expected}");
}

#[test]
fn a_place_under_a_roof_is_darker_than_one_beside_it() {
    let mut points = slab(0.5, 0.6, 0.05);
    points.extend([0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    let roofed = scene(&points, vec![[200; 3]], 0.05);
    let lamp = Lamp { elevation: 90.0, softness: 5.0, ..Lamp::default() };
    let light = Light::new(&roofed, &lamp, 0.0, &fineness());
    let up: Vector = [0.0, 0.0, 1.0];
    let count = roofed.len();
    let top = |sphere: usize| {
        let [x, y, z] = roofed.centres[sphere];
        light.at([x, y, z + roofed.radius], up)
    };
    let (under, beside) = (top(count - 2), top(count - 1));
    assert!(under[1] < 0.02 && beside[1] > 0.95, "{under:?} {beside:?}");
    assert!(under[0] < 0.75 * beside[0], "{under:?} {beside:?}");
    // A plane that nothing stands on is not shaded by itself: no acne.
    let plane = scene(&slab(0.5, 0.0, 0.05), vec![[200; 3]], 0.05);
    let light = Light::new(&plane, &lamp, 0.0, &fineness());
    for &[x, y, z] in &plane.centres {
        let [sky, direct] = light.at([x, y, z + plane.radius], up);
        assert!(sky > 0.97 && direct > 0.97, "{sky} {direct}");
    }
}

#[test]
fn threads_do_not_change_a_byte() -> Result<()> {
    let points: Vec<f32> = (0..300)
        .flat_map(|index: u16| {
            let [x, y, z] = towards(f32::from(index) * 137.5, f32::from(index % 180) - 90.0);
            [x, y, z * 0.7]
        })
        .collect();
    let colours = (0..300_u16).map(|index| [(index % 256) as u8, 120, 200]).collect();
    let scene = scene(&points, colours, 0.06);
    let options = RenderOptions { size: [150, 110], ..RenderOptions::default() };
    let panel = Panel { scene, label: "a".into() };
    let sheet = Sheet { panels: vec![panel.clone(), panel], columns: 2, key: None };
    let with = |threads: usize| -> Result<(RgbaImage, String)> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            Ok((sheet.draw(&options, &[], &|| ())?, render_svg(&sheet, &options, &[])?))
        })
    };
    let one = with(1)?;
    for threads in [2, 5] {
        let many = with(threads)?;
        assert!(one.0 == many.0 && one.1 == many.1, "{threads} threads");
    }
    Ok(())
}

#[test]
fn all_of_a_cloud_is_in_its_frame() -> Result<()> {
    let points = slab(1.0, 0.3, 0.25);
    let scene = scene(&points, vec![[255, 0, 0]], 0.1);
    for (elevation, size) in
        [(-40.0, [90, 60]), (0.0, [60, 60]), (25.0, [61, 95]), (90.0, [80, 50])]
    {
        let view = View { elevation, ..View::default() };
        let options = RenderOptions { size, view, has_ground: false, ..RenderOptions::default() };
        let picture = render(&scene, &options)?;
        let [width, height] = size;
        let is_edge = |x: u32, y: u32| x == 0 || y == 0 || x + 1 == width || y + 1 == height;
        let clipped = picture
            .enumerate_pixels()
            .filter(|(x, y, pixel)| is_edge(*x, *y) && pixel.0 != [255; 4])
            .count();
        assert_eq!(clipped, 0, "at {elevation}°");
        let drawn = picture.pixels().filter(|pixel| pixel.0 != [255; 4]).count();
        assert!(drawn > 150, "at {elevation}°: {drawn}");
    }
    Ok(())
}

#[test]
fn any_cloud_is_drawn() -> Result<()> {
    let options = RenderOptions { size: [40, 40], ..RenderOptions::default() };
    for points in [vec![1.0; 3], vec![2.0; 60], vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0]] {
        let placement = Placement::around(&[&points], 3, Up::Y)?;
        let scene = Scene::new(&points, 3, &placement, vec![[90; 3]], None)?;
        let dark = render(&scene, &options)?.pixels().filter(|pixel| pixel[0] < 200).count();
        assert!(dark > 8, "{} numbers: {dark}", points.len());
    }
    let flat = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
    let placement = Placement::around(&[&flat], 2, Up::Z)?;
    let scene = Scene::new(&flat, 2, &placement, vec![[90; 3]], None)?;
    let picture = render(&scene, &options)?;
    // The corners lie left below, right below and left above.
    let dark =
        |x: u32, y: u32| (x..x + 8).any(|x| (y..y + 8).any(|y| picture.get_pixel(x, y)[0] < 200));
    assert!(dark(0, 32) && dark(32, 32) && dark(0, 0) && !dark(32, 0));
    Ok(())
}

#[test]
fn backgrounds_are_what_they_say() -> Result<()> {
    let spheres = scene(&[0.0, 0.0, 0.0, 0.4, 0.0, 0.5], vec![[200; 3]], 0.2);
    let corner = |background| -> Result<[u8; 4]> {
        let options = RenderOptions { size: [60, 60], background, ..RenderOptions::default() };
        Ok(render(&spheres, &options)?.get_pixel(0, 0).0)
    };
    assert_eq!(corner(Background::White)?, [255; 4]);
    assert_eq!(corner(Background::Dark)?, [24, 26, 31, 255]);
    assert_eq!(corner(Background::Transparent)?, [0; 4]);
    assert_eq!(corner(Background::Colour([1, 2, 3]))?, [1, 2, 3, 255]);
    // A transparent picture on white is the white one.
    let with = |background| {
        let options = RenderOptions { size: [60, 60], background, ..RenderOptions::default() };
        render(&spheres, &options)
    };
    let (white, clear) = (with(Background::White)?, with(Background::Transparent)?);
    for (x, y, white) in white.enumerate_pixels() {
        let clear = clear.get_pixel(x, y);
        let opacity = f64::from(clear[3]) / 255.0;
        let on_white = f64::from(clear[0]) * opacity + 255.0 * (1.0 - opacity);
        // Edges mix in light in one and in levels in the other.
        let is_edge = clear[0] > 0 && clear[3] < 255;
        let tolerance = if is_edge { 30.0 } else { 2.0 };
        assert!(
            (on_white - f64::from(white[0])).abs() <= tolerance,
            "{x} {y}: {white:?} {clear:?}"
        );
    }
    Ok(())
}

#[test]
fn sizes_and_angles_out_of_range_are_refused() {
    let with = |change: &dyn Fn(&mut RenderOptions)| {
        let mut options = RenderOptions::default();
        change(&mut options);
        options.check().is_err()
    };
    assert!(!with(&|_| ()));
    assert!(with(&|options| options.size = [0, 10]));
    assert!(with(&|options| options.size = [10, LONGEST_SIDE + 1]));
    assert!(with(&|options| options.view.elevation = 91.0));
    assert!(with(&|options| options.view.azimuth = f32::NAN));
    assert!(with(&|options| options.view.distance = Some(1.0)));
    assert!(with(&|options| options.lamp.softness = -1.0));
    let spheres = scene(&[0.0; 3], vec![[200; 3]], 0.2);
    let panels = vec![Panel { scene: spheres, label: String::new() }; 40];
    let sheet = Sheet { panels, columns: 40, key: None };
    assert!(sheet.size(&RenderOptions::default()).is_err());
}

/// Frames of a turn are fitted to all of it: none needs more room than the common one.
#[test]
fn a_turn_keeps_its_frame() {
    let spheres = scene(&[-1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.5], vec![[200; 3]], 0.1);
    let options = RenderOptions { has_ground: false, ..RenderOptions::default() };
    let panel = Panel { scene: spheres.clone(), label: String::new() };
    let sheet = Sheet { panels: vec![panel], columns: 1, key: None };
    let azimuths = [0.0, 45.0, 90.0, 135.0];
    let common = frames(std::slice::from_ref(&sheet), &options, &azimuths, false);
    let wide = frames(std::slice::from_ref(&sheet), &options, &[90.0], false);
    assert_eq!(common.len(), 1);
    assert_ne!(common[0], wide[0]);
    let mut all =
        azimuths.map(|azimuth| frame_of(&spheres, &View { azimuth, ..options.view }, None));
    all.reverse();
    assert_eq!(common[0], super::camera::joined(&all));
    let camera = Camera::new(&options.view, spheres.reach);
    assert!(camera.eye[2] > 0.0);
}

#[test]
fn a_drawing_is_well_formed_and_complete() -> Result<()> {
    // Two apart and one hidden behind a large one.
    let points = [-1.0, 0.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.05, 0.0];
    let spheres = scene(&points, vec![[200, 80, 40]], 0.2);
    let panel = |label: &str| Panel { scene: spheres.clone(), label: label.into() };
    let bar = Key::Bar { map: ColourMap::Magma, range: [0.0, 2.0], name: "a < b".into() };
    let words = Key::Words(vec![("legs & seat".into(), [1, 2, 3])]);
    for (key, word) in [(bar, "a &lt; b"), (words, "legs &amp; seat")] {
        let sheet = Sheet { panels: vec![panel("<first>"), panel("")], columns: 1, key: Some(key) };
        let svg = render_svg(&sheet, &plain(120), &[])?;
        assert!(svg.contains(word) && svg.contains("&lt;first&gt;"));
        assert!(svg.matches("<circle ").count() >= 4);
        well_formed(&svg);
        let [width, height] = sheet.size(&plain(120))?;
        assert!(svg.contains(&format!("width=\"{width}\" height=\"{height}\" viewBox")));
        let opaque = RenderOptions { background: Background::Dark, has_ground: true, ..plain(120) };
        well_formed(&render_svg(&sheet, &opaque, &[])?);
    }
    Ok(())
}

/// Every element is closed in its order, every attribute quoted, every `&` an entity.
fn well_formed(text: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a stray >");
        let end = start + rest[start..].find('>').expect("an end");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or_default().to_owned());
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
    for part in text.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;"].iter().any(|entity| part.starts_with(entity)), "{part}");
    }
}
