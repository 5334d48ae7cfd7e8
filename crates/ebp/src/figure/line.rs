//! Lines and polygons before they are drawn: cut off at the edges of an area, cut into dashes, thinned.

use super::drawing::Area;

/// Longer lines are thinned.
const MANY: usize = 2000;
/// Points of a line that share so narrow a column, in points of the page, are drawn as their extremes.
const COLUMN: f64 = 0.25;

/// Of points in a row that share a narrow column the first, the lowest, the highest and the last: what
/// lies between cannot be seen, and ten thousands of steps need no larger file.
pub(super) fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    if points.len() <= MANY {
        return points.to_vec();
    }
    let column = |point: &[f64; 2]| (point[0] / COLUMN).floor();
    let together = |a: &[f64; 2], b: &[f64; 2]| {
        let are_finite = a.iter().chain(b).all(|number| number.is_finite());
        are_finite && (column(a) - column(b)).abs() < 0.5
    };
    let mut kept = Vec::new();
    for run in points.chunk_by(together) {
        let at = |least: bool| {
            let order = |a: &(usize, &[f64; 2]), b: &(usize, &[f64; 2])| a.1[1].total_cmp(&b.1[1]);
            let all = run.iter().enumerate();
            let found = if least { all.min_by(order) } else { all.max_by(order) };
            found.map_or(0, |(index, _)| index)
        };
        let mut places = [0, at(true), at(false), run.len() - 1];
        places.sort_unstable();
        kept.extend(places.iter().enumerate().filter_map(|(k, &place)| {
            let is_new = k == 0 || places[k - 1] != place;
            is_new.then_some(run[place])
        }));
    }
    kept
}

/// The parts of a line within an area. It breaks at points that are not finite.
pub(super) fn clipped(points: &[[f64; 2]], area: Area) -> Vec<Vec<[f64; 2]>> {
    let mut lines: Vec<Vec<[f64; 2]>> = Vec::new();
    let mut is_joined = false;
    for pair in points.windows(2) {
        let Some([a, b]) = inside(pair[0], pair[1], area) else {
            is_joined = false;
            continue;
        };
        match lines.last_mut() {
            Some(line) if is_joined => line.push(b),
            _ => lines.push(vec![a, b]),
        }
        // A part that reaches the end of its piece goes on with the next.
        is_joined = b.map(f64::to_bits) == pair[1].map(f64::to_bits);
    }
    lines
}

/// The part of a straight line within an area (Liang and Barsky, 1984): a + s (b − a) for s from the
/// last edge that it enters by to the first that it leaves by.
fn inside(a: [f64; 2], b: [f64; 2], area: Area) -> Option<[[f64; 2]; 2]> {
    if !a.iter().chain(&b).all(|number| number.is_finite()) {
        return None;
    }
    let (mut from, mut to) = (0.0_f64, 1.0_f64);
    let bounds = [[area.left, area.right()], [area.top, area.bottom()]];
    for ((a, b), [low, high]) in a.iter().zip(b).zip(bounds) {
        // Halves keep the difference of huge numbers finite.
        let step = 0.5 * b - 0.5 * a;
        for (edge, sign) in [(low, 1.0), (high, -1.0)] {
            let (room, step) = (sign * (0.5 * edge - 0.5 * a), sign * step);
            if step > 0.0 {
                from = from.max(room / step);
            } else if step < 0.0 {
                to = to.min(room / step);
            } else if room > 0.0 {
                return None;
            }
        }
    }
    let at = |s: f64| {
        [0, 1].map(|axis| {
            let place = a[axis] * (1.0 - s) + b[axis] * s;
            place.clamp(bounds[axis][0], bounds[axis][1])
        })
    };
    let ends = [if from > 0.0 { at(from) } else { a }, if to < 1.0 { at(to) } else { b }];
    (from <= to).then_some(ends)
}

/// The part of a polygon within an area (Sutherland and Hodgman, 1974): cut at one edge after the other.
pub(super) fn clipped_polygon(contour: &[[f64; 2]], area: Area) -> Vec<[f64; 2]> {
    let mut kept: Vec<[f64; 2]> = contour
        .iter()
        .copied()
        .filter(|point| point.iter().all(|number| number.is_finite()))
        .collect();
    for (axis, edge, sign) in
        [(0, area.left, 1.0), (0, area.right(), -1.0), (1, area.top, 1.0), (1, area.bottom(), -1.0)]
    {
        let depth = |point: &[f64; 2]| sign * (point[axis] - edge);
        let mut cut = Vec::with_capacity(kept.len() + 4);
        let ends = kept.iter().cycle().skip(1);
        for (a, b) in kept.iter().zip(ends) {
            let (from, to) = (depth(a), depth(b));
            if from >= 0.0 {
                cut.push(*a);
            }
            if (from >= 0.0) != (to >= 0.0) {
                let share = from / (from - to);
                let mut point = [0, 1].map(|axis| a[axis] + share * (b[axis] - a[axis]));
                point[axis] = edge;
                cut.push(point);
            }
        }
        kept = cut;
    }
    kept
}

/// The inked parts of a line, by lengths of ink and gap in turn; a line without dashes is whole.
pub(super) fn dashed(line: &[[f64; 2]], dash: &[f64]) -> Vec<Vec<[f64; 2]>> {
    let (Some(&first), Some(&start)) = (dash.first(), line.first()) else {
        return vec![line.to_vec()];
    };
    if dash.iter().sum::<f64>() <= 0.0 {
        return vec![line.to_vec()];
    }
    let (mut parts, mut index, mut left) = (vec![vec![start]], 0, first);
    for pair in line.windows(2) {
        let [mut here, end] = [pair[0], pair[1]];
        loop {
            let away = (end[0] - here[0]).hypot(end[1] - here[1]);
            let is_ink = index % 2 == 0;
            if away <= left {
                left -= away;
                if is_ink && let Some(part) = parts.last_mut() {
                    part.push(end);
                }
                break;
            }
            let share = left / away;
            here = [0, 1].map(|axis| here[axis] + share * (end[axis] - here[axis]));
            match (is_ink, parts.last_mut()) {
                (true, Some(part)) => part.push(here),
                _ => parts.push(vec![here]),
            }
            index += 1;
            left = dash[index % dash.len()];
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { left: 0.0, top: 0.0, width: 10.0, height: 10.0 };

    #[test]
    fn lines_are_cut_at_the_edges() {
        let line = [[-5.0, 5.0], [5.0, 5.0], [5.0, 20.0], [8.0, 20.0], [8.0, 5.0]];
        let expected = [vec![[0.0, 5.0], [5.0, 5.0], [5.0, 10.0]], vec![[8.0, 10.0], [8.0, 5.0]]];
        assert_eq!(clipped(&line, AREA), expected);
        let odd = [[1.0, 1.0], [f64::NAN, 2.0], [3.0, 3.0], [4.0, 1e300], [5.0, -1e300]];
        let found = clipped(&odd, AREA);
        assert_eq!(found.len(), 2);
        assert!(found.iter().flatten().flatten().all(|x| (0.0..=10.0).contains(x)), "{found:?}");
        assert!(clipped(&[[-1.0, -1.0], [-2.0, 5.0]], AREA).is_empty());
    }

    #[test]
    fn polygons_are_cut_at_the_edges() {
        let found = clipped_polygon(&[[-5.0, 2.0], [5.0, 2.0], [5.0, 50.0], [-5.0, 50.0]], AREA);
        let area: f64 = found
            .iter()
            .zip(found.iter().cycle().skip(1))
            .map(|(a, b)| 0.5 * (a[0] * b[1] - b[0] * a[1]))
            .sum();
        assert!((area.abs() - 40.0).abs() < 1e-9, "{found:?}");
        assert!(clipped_polygon(&[[20.0, 2.0], [30.0, 2.0], [30.0, 5.0]], AREA).is_empty());
    }

    #[test]
    fn dashes_have_their_lengths_around_corners() {
        let parts = dashed(&[[0.0, 0.0], [4.0, 0.0], [4.0, 6.0]], &[3.0, 2.0]);
        // Three of ink, two of gap around the corner, three of ink; the last gap ends with the line.
        let expected = [vec![[0.0, 0.0], [3.0, 0.0]], vec![[4.0, 1.0], [4.0, 4.0]]];
        assert_eq!(parts, expected);
        assert_eq!(dashed(&[[0.0, 0.0], [4.0, 0.0]], &[]).len(), 1);
    }

    #[test]
    fn thinned_lines_keep_their_ends_and_extremes() {
        let points: Vec<[f64; 2]> =
            (0..20_000).map(|k| [f64::from(k) * 0.01, f64::from(k * 7 % 101)]).collect();
        let kept = thinned(&points);
        assert!(kept.len() <= 4 * 801 && kept.len() > 1000, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[19_999]));
        let extremes = |points: &[[f64; 2]]| {
            let low = points.iter().map(|p| p[1]).fold(f64::INFINITY, f64::min);
            (low, points.iter().map(|p| p[1]).fold(0.0, f64::max))
        };
        assert_eq!(extremes(&kept), extremes(&points));
        assert_eq!(thinned(&points[..100]).len(), 100);
    }
}
