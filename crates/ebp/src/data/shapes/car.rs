//! Cars: front along +x, z up, wheels on the ground. Saloons, hatchbacks, estates, coupés,
//! off-roaders, vans, pickups and open cars.

mod body;
mod details;
mod wheels;

use super::Parts;
use super::draw::Draw;

use body::{bed, body, cabin, cockpit};
use details::details;
use wheels::wheels;

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
