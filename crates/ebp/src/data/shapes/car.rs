//! Cars: front along +x, z up, wheels on the ground. Saloons, hatchbacks, estates, coupés,
//! off-roaders, vans, pickups and open cars.

use super::Parts;
use super::draw::Draw;
use super::solid::{
    Point, add, bar, cuboid, disc, ellipsoid, loft, mirrored, outline, rod, tube, tyre,
};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Saloon,
    Hatchback,
    Estate,
    Coupe,
    OffRoad,
    Van,
    Pickup,
    Open,
}

/// The measures that all parts share; the car is two units long.
struct Frame {
    half_width: f64,
    /// The underside, the height of the bonnet's front and the line below the windows.
    floor: f64,
    nose: f64,
    belt: f64,
    /// The height of the boot's end.
    rear: f64,
    roof: f64,
    /// Along x: foot and head of the windscreen, head and foot of the rear window.
    screen: [f64; 2],
    back: [f64; 2],
    /// How much narrower the body gets towards its ends, and how square its sections are.
    round_front: f64,
    round_rear: f64,
    power: f64,
    /// The roof's width by the body's.
    tumble: f64,
    wheel: f64,
    axles: [f64; 2],
}

/// Draws a car.
pub(super) fn car(draw: &mut Draw) -> Parts {
    let kind = draw.pick(
        &[
            (0.28, Kind::Saloon),
            (0.16, Kind::Hatchback),
            (0.10, Kind::Estate),
            (0.14, Kind::Coupe),
            (0.14, Kind::OffRoad),
            (0.07, Kind::Van),
            (0.06, Kind::Pickup),
            (0.05, Kind::Open),
        ],
        Kind::Saloon,
    );
    let frame = frame(draw, kind);
    let mut parts = Parts::default();
    body(&frame, &mut parts);
    match kind {
        Kind::Open => cockpit(draw, &frame, &mut parts),
        _ => cabin(&frame, &mut parts),
    }
    if kind == Kind::Pickup {
        bed(&frame, &mut parts);
    }
    wheels(draw, &frame, kind, &mut parts);
    details(draw, &frame, kind, &mut parts);
    parts
}

fn frame(draw: &mut Draw, kind: Kind) -> Frame {
    let wheel = match kind {
        Kind::OffRoad | Kind::Pickup => draw.between(0.165, 0.2),
        _ => draw.between(0.135, 0.165),
    };
    let floor = wheel
        * match kind {
            Kind::OffRoad | Kind::Pickup => draw.between(0.85, 1.2),
            Kind::Coupe | Kind::Open => draw.between(0.4, 0.6),
            _ => draw.between(0.5, 0.8),
        };
    let belt = floor
        + match kind {
            Kind::Coupe | Kind::Open => draw.between(0.23, 0.29),
            Kind::Van => draw.between(0.34, 0.42),
            _ => draw.between(0.27, 0.35),
        };
    let roof = belt
        + match kind {
            Kind::Coupe => draw.between(0.17, 0.22),
            Kind::Van => draw.between(0.3, 0.5),
            Kind::OffRoad => draw.between(0.24, 0.31),
            _ => draw.between(0.2, 0.27),
        };
    let foot = match kind {
        Kind::Van => draw.between(0.62, 0.8),
        Kind::Coupe => draw.between(0.22, 0.36),
        Kind::Pickup => draw.between(0.42, 0.52),
        _ => draw.between(0.36, 0.5),
    };
    let rake =
        if kind == Kind::OffRoad { draw.between(0.1, 0.25) } else { draw.between(0.22, 0.38) };
    let (head, end) = match kind {
        Kind::Saloon => (draw.between(-0.42, -0.28), draw.between(-0.75, -0.6)),
        Kind::Coupe => (draw.between(-0.3, -0.1), draw.between(-0.85, -0.6)),
        Kind::Hatchback => (draw.between(-0.75, -0.6), draw.between(-0.96, -0.86)),
        Kind::Pickup => (draw.between(-0.12, 0.02), draw.between(-0.2, -0.1)),
        Kind::Estate | Kind::OffRoad => (draw.between(-0.9, -0.8), draw.between(-0.97, -0.93)),
        _ => (draw.between(-0.95, -0.9), -0.98),
    };
    let end = end.min(head - 0.02);
    let is_low_rear = kind == Kind::Pickup;
    Frame {
        half_width: draw.between(0.39, 0.45) * if kind == Kind::Hatchback { 1.06 } else { 1.0 },
        floor,
        nose: belt - draw.between(0.03, 0.11),
        belt,
        rear: if is_low_rear { belt - 0.16 } else { belt - draw.between(-0.01, 0.05) },
        roof,
        screen: [foot, foot - rake],
        back: [head, end],
        round_front: draw.between(0.08, 0.3),
        round_rear: draw.between(0.05, 0.22),
        power: if kind == Kind::OffRoad { draw.between(6.0, 10.0) } else { draw.between(3.5, 6.0) },
        tumble: if kind == Kind::Van { draw.between(0.88, 0.95) } else { draw.between(0.68, 0.84) },
        wheel,
        axles: [draw.between(0.58, 0.68), draw.between(-0.66, -0.54)],
    }
}

/// Straight lines through the given heights, rising along x.
fn interpolate(points: &[[f64; 2]], x: f64) -> f64 {
    for pair in points.windows(2) {
        let [[x0, y0], [x1, y1]] = [pair[0], pair[1]];
        if x <= x1 {
            let share = if x1 > x0 { ((x - x0) / (x1 - x0)).max(0.0) } else { 1.0 };
            return y0 + (y1 - y0) * share;
        }
    }
    points[points.len() - 1][1]
}

/// Sections of body and cabin.
const STATIONS: usize = 30;

/// The lower body: sections along x with the outline of bonnet, belt and boot.
fn body(frame: &Frame, parts: &mut Parts) {
    let top = [
        [-1.0, frame.rear - 0.03],
        [-0.96, frame.rear],
        [frame.back[1], 0.5 * (frame.rear + frame.belt)],
        [frame.screen[0], frame.belt],
        [0.9, frame.nose],
        [0.97, frame.nose - 0.04],
        [1.0, frame.nose - 0.1],
    ];
    let rings: Vec<Vec<Point>> = (0..=STATIONS)
        .map(|station| {
            let x = -(std::f64::consts::PI * station as f64 / STATIONS as f64).cos();
            let high = interpolate(&top, x);
            let round = if x > 0.0 { frame.round_front } else { frame.round_rear };
            let wide = frame.half_width * (1.0 - round * x.abs().powi(5));
            // The underside rises at both ends.
            let low = frame.floor + 0.06 * x.abs().powi(6);
            let half = [wide, 0.5 * (high - low)];
            let middle = 0.5 * (high + low);
            outline(28, half, frame.power).iter().map(|[y, z]| [x, *y, middle + z]).collect()
        })
        .collect();
    parts.push(loft(&rings));
}

/// Windows and roof: sections that narrow towards the roof.
fn cabin(frame: &Frame, parts: &mut Parts) {
    let profile = [
        [frame.back[1], frame.belt - 0.01],
        [frame.back[0], frame.roof - 0.012],
        [0.5 * (frame.back[0] + frame.screen[1]), frame.roof],
        [frame.screen[1], frame.roof - 0.008],
        [frame.screen[0], frame.belt - 0.01],
    ];
    let rings: Vec<Vec<Point>> = (0..=STATIONS)
        .map(|station| {
            let share = 0.5 - 0.5 * (std::f64::consts::PI * station as f64 / STATIONS as f64).cos();
            let x = frame.back[1] + share * (frame.screen[0] - frame.back[1]);
            let high = interpolate(&profile, x).max(frame.belt - 0.008);
            let low = frame.belt - 0.05;
            let round = if x > 0.0 { frame.round_front } else { frame.round_rear };
            let wide = 0.96 * frame.half_width * (1.0 - round * x.abs().powi(5));
            let half = 0.5 * (high - low);
            outline(24, [1.0, half], 5.0)
                .iter()
                .map(|[y, z]| {
                    let above = (low + half + z - frame.belt) / (frame.roof - frame.belt);
                    let narrow = 1.0 - (1.0 - frame.tumble) * above.clamp(0.0, 1.0);
                    [x, y * wide * narrow, low + half + z]
                })
                .collect()
        })
        .collect();
    parts.push(loft(&rings));
}

/// An open car: windscreen, seats, and often a roll bar.
fn cockpit(draw: &mut Draw, frame: &Frame, parts: &mut Parts) {
    let wide = 0.85 * frame.half_width;
    let [foot, head] = frame.screen;
    let top = frame.belt + 0.8 * (frame.roof - frame.belt);
    let corner =
        |y: f64| [[foot, y, frame.belt - 0.02], [foot - 0.7 * (foot - head), 0.9 * y, top]];
    let [[a, b], [c, d]] = [corner(-wide), corner(wide)];
    let thin = |p: Point| add(p, [0.012, 0.0, 0.0]);
    parts.push(loft(&[vec![a, c, d, b], vec![thin(a), thin(c), thin(d), thin(b)]]));
    let seats = draw.between(-0.22, -0.08);
    let high = draw.between(0.1, 0.16);
    for side in [-0.45, 0.45] {
        let place = [seats, side * frame.half_width, frame.belt + 0.4 * high];
        parts.push(cuboid(place, [0.07, 0.5 * frame.half_width, high]));
    }
    if draw.chance(0.6) {
        let x = seats - 0.12;
        let path = [
            [x, -0.7 * wide, frame.belt - 0.02],
            [x, -0.65 * wide, top - 0.02],
            [x, 0.65 * wide, top - 0.02],
            [x, 0.7 * wide, frame.belt - 0.02],
        ];
        parts.push(tube(&path, &[0.016], 10));
    }
}

/// The open bed of a pickup.
fn bed(frame: &Frame, parts: &mut Parts) {
    let [from, to] = [-0.98, frame.back[1] - 0.02];
    let y = 0.9 * frame.half_width;
    let high = frame.belt - frame.rear + 0.06;
    let z = frame.rear + 0.5 * high - 0.05;
    let long = to - from;
    parts.push_pair(cuboid([0.5 * (from + to), y, z], [long, 0.04, high]));
    for x in [from, to] {
        parts.push(cuboid([x, 0.0, z], [0.04, 2.0 * y, high]));
    }
}

fn wheels(draw: &mut Draw, frame: &Frame, kind: Kind, parts: &mut Parts) {
    let half = frame.wheel * draw.between(0.28, 0.4);
    let rim = draw.between(0.6, 0.75);
    let out = frame.half_width - half + draw.between(0.0, 0.025);
    let num_spokes = draw.whole(4, 9);
    // The wells that the wheels turn in, cut out of the body.
    let well = frame.wheel * draw.between(1.1, 1.22);
    for x in frame.axles {
        let hollow = disc([x, frame.half_width, frame.wheel], well, 2.4 * half);
        parts.hollow_out(mirrored(&hollow));
        parts.hollow_out(hollow);
    }
    let has_flares = matches!(kind, Kind::OffRoad | Kind::Pickup) || draw.chance(0.4);
    for x in frame.axles {
        let centre = [x, out, frame.wheel];
        parts.push_pair(tyre(centre, frame.wheel, rim * frame.wheel, half));
        parts.push_pair(disc(
            add(centre, [0.0, 0.55 * half, 0.0]),
            0.25 * rim * frame.wheel,
            0.25 * half,
        ));
        for spoke in 0..num_spokes {
            let angle = std::f64::consts::TAU * spoke as f64 / num_spokes as f64;
            let (sine, cosine) = angle.sin_cos();
            let reach = rim * frame.wheel;
            let hub = add(centre, [0.0, 0.6 * half, 0.0]);
            parts.push_pair(rod(hub, add(hub, [reach * cosine, 0.0, reach * sine]), 0.014, 0.014));
        }
        parts.push(rod([x, -out, frame.wheel], [x, out, frame.wheel], 0.02, 0.02));
        if has_flares {
            let radius = well + 0.008;
            let path: Vec<Point> = (0..=12)
                .map(|step| {
                    let (sine, cosine) = (std::f64::consts::PI * f64::from(step) / 12.0).sin_cos();
                    [x + radius * cosine, frame.half_width - 0.005, frame.wheel + radius * sine]
                })
                .collect();
            parts.push_pair(tube(&path, &[0.018], 8));
        }
    }
}

fn details(draw: &mut Draw, frame: &Frame, kind: Kind, parts: &mut Parts) {
    let [y, z] = [frame.half_width, frame.nose - 0.06];
    let front = 1.0 - 0.5 * frame.round_front * 0.2;
    // Lamps.
    let lamp = draw.between(0.03, 0.055);
    parts.push_pair(ellipsoid([front - 0.03, 0.68 * y, z], [0.035, 1.3 * lamp, lamp]));
    parts.push_pair(ellipsoid([-0.985, 0.74 * y, frame.rear - 0.08], [0.03, lamp, 1.2 * lamp]));
    // Bumpers.
    if draw.chance(0.7) {
        let low = frame.floor + 0.09;
        for (x, round) in [(1.0, frame.round_front), (-1.0, frame.round_rear)] {
            let wide = y * (1.0 - round) + 0.02;
            let path = [
                [0.93 * x, -wide, low],
                [1.01 * x, -0.8 * wide, low],
                [1.02 * x, 0.0, low],
                [1.01 * x, 0.8 * wide, low],
                [0.93 * x, wide, low],
            ];
            parts.push(tube(&path, &[draw.between(0.028, 0.05)], 10));
        }
    }
    // Mirrors.
    let mirror = [frame.screen[0] - 0.08, 0.98 * y + 0.045, frame.belt + 0.035];
    if draw.chance(0.85) {
        parts.push_pair(ellipsoid(mirror, [0.022, 0.04, 0.03]));
        parts.push_pair(rod([mirror[0], 0.85 * y, frame.belt - 0.01], mirror, 0.01, 0.01));
    }
    if kind == Kind::Coupe && draw.chance(0.55) {
        let high = draw.between(0.05, 0.13);
        let wing = frame.rear + high;
        parts.push(cuboid([-0.92, 0.0, wing], [0.12, 1.7 * y, 0.016]));
        parts.push_pair(bar(
            [-0.92, 0.6 * y, frame.rear - 0.03],
            [-0.92, 0.6 * y, wing],
            [0.05, 0.02],
            [0.05, 0.02],
        ));
    }
    let is_tall = matches!(kind, Kind::OffRoad | Kind::Estate | Kind::Van);
    if is_tall && draw.chance(0.5) {
        let side = 0.85 * frame.tumble * y;
        let rail = frame.roof + 0.025;
        let [from, to] = [frame.back[0] + 0.05, frame.screen[1] - 0.05];
        parts.push_pair(rod([from, side, rail], [to, side, rail], 0.012, 0.012));
        let num_bars = draw.whole(0, 4);
        for number in 0..num_bars {
            let x = from + (to - from) * (number as f64 + 0.5) / num_bars as f64;
            parts.push(rod([x, -side, rail], [x, side, rail], 0.01, 0.01));
        }
        for x in [from, to] {
            parts.push_pair(rod([x, side, frame.roof - 0.03], [x, side, rail], 0.01, 0.01));
        }
    }
    if kind == Kind::OffRoad && draw.chance(0.4) {
        // The spare wheel on the back door; a tyre lies around the y axis and is turned.
        let spare = super::solid::turned(
            tyre([0.0; 3], 0.85 * frame.wheel, 0.4 * frame.wheel, 0.05),
            0.25 * std::f64::consts::TAU,
        );
        parts.push(super::solid::changed(spare, |p| add(p, [-1.04, 0.0, frame.belt - 0.02])));
    }
    if draw.chance(0.4) {
        parts.push_pair(rod(
            [-0.9, 0.5 * y, frame.floor + 0.03],
            [-1.02, 0.5 * y, frame.floor + 0.03],
            0.02,
            0.02,
        ));
    }
}
