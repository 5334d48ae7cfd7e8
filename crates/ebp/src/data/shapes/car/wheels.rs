//! The wheels of a car and the wells that they turn in.

use super::{Frame, Kind};
use crate::data::shapes::Parts;
use crate::data::shapes::draw::Draw;
use crate::data::shapes::solid::{Point, add, disc, mirrored, rod, tube, tyre};

pub(super) fn wheels(draw: &mut Draw, frame: &Frame, kind: Kind, parts: &mut Parts) {
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
