//! Axes: where the ticks stand and what they say.

/// How numbers are laid out along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithms; only positive numbers are shown.
    Logarithmic,
}

/// A range of numbers and its ticks.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    pub(super) ticks: Vec<Tick>,
    /// Numbers with a small tick and no label.
    pub(super) minor: Vec<f64>,
}

/// A marked number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

impl Axis {
    /// The range `low..high` as it is, with about `num_ticks` ticks. A range that is empty or not
    /// finite is replaced by one around what can be used of it.
    pub(super) fn new(low: f64, high: f64, scale: Scale, num_ticks: usize) -> Self {
        let (low, high) = usable(low, high, scale);
        let ticks = match scale {
            Scale::Linear => linear_ticks(low, high, num_ticks),
            Scale::Logarithmic => logarithmic_ticks(low, high, num_ticks),
        };
        let minor = match scale {
            Scale::Linear => Vec::new(),
            Scale::Logarithmic => minor_ticks(low, high, &ticks),
        };
        Self { low, high, scale, ticks, minor }
    }

    /// Where `value` lies: 0 at the low end, 1 at the high end.
    pub(super) fn position(&self, value: f64) -> f64 {
        let place = |number: f64| match self.scale {
            Scale::Linear => number,
            Scale::Logarithmic => number.ln(),
        };
        (place(value) - place(self.low)) / (place(self.high) - place(self.low))
    }
}

fn usable(low: f64, high: f64, scale: Scale) -> (f64, f64) {
    let (low, high) = match scale {
        Scale::Linear if low.is_finite() && high.is_finite() => (low.min(high), low.max(high)),
        Scale::Logarithmic if low > 0.0 && high > 0.0 && low.is_finite() && high.is_finite() => {
            (low.min(high), low.max(high))
        }
        Scale::Linear => (0.0, 1.0),
        Scale::Logarithmic => (0.1, 1.0),
    };
    if high > low {
        return (low, high);
    }
    match scale {
        Scale::Linear => {
            let margin = if low == 0.0 { 1.0 } else { 0.1 * low.abs() };
            (low - margin, high + margin)
        }
        Scale::Logarithmic => (0.5 * low, 2.0 * high),
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, num_ticks: usize) -> Vec<Tick> {
    let rough = (high - low) / num_ticks.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = power
        * [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= 0.999 * rough).unwrap_or(10.0);
    let largest = low.abs().max(high.abs());
    let mut ticks = Vec::new();
    let mut multiple = (low / step - 1e-9).ceil();
    while multiple * step <= high + 1e-9 * step && ticks.len() <= 2 * num_ticks + 2 {
        ticks.push(Tick { value: multiple * step, label: number(multiple * step, step, largest) });
        multiple += 1.0;
    }
    ticks
}

/// Powers of ten, every k-th if there are many; with 2 and 5 between if there are few.
fn logarithmic_ticks(low: f64, high: f64, num_ticks: usize) -> Vec<Tick> {
    let decades = (high / low).log10();
    let factors: &[f64] = if decades < 1.5 {
        &[1.0, 2.0, 3.0, 5.0]
    } else if decades < 3.0 {
        &[1.0, 3.0]
    } else {
        &[1.0]
    };
    let stride = (decades / num_ticks.max(1) as f64).ceil().max(1.0);
    let mut ticks = Vec::new();
    let mut exponent = (low.log10().floor() / stride).floor() * stride;
    while exponent <= high.log10() + 1e-9 {
        for factor in factors {
            let value = factor * 10_f64.powf(exponent);
            if value >= low * (1.0 - 1e-9) && value <= high * (1.0 + 1e-9) {
                ticks.push(Tick { value, label: plain_or_power(value) });
            }
        }
        exponent += stride;
    }
    if ticks.len() < 2 { linear_ticks(low, high, num_ticks) } else { ticks }
}

/// The whole multiples of powers of ten between the ticks, unless they would be too near to each other.
fn minor_ticks(low: f64, high: f64, ticks: &[Tick]) -> Vec<f64> {
    const MOST_DECADES: f64 = 6.0;
    if (high / low).log10() > MOST_DECADES {
        return Vec::new();
    }
    let (first, last) = (whole(low.log10().floor()), whole(high.log10().floor()));
    let all =
        (first..=last).flat_map(|power| (1..10).map(move |k| f64::from(k) * 10_f64.powi(power)));
    let is_tick = |value: f64| ticks.iter().any(|tick| (tick.value / value - 1.0).abs() < 1e-6);
    all.filter(|&value| (low..=high).contains(&value) && !is_tick(value)).collect()
}

/// With as many decimals as the step needs, or as a power of ten where that would be long.
fn number(value: f64, step: f64, largest: f64) -> String {
    // A sum of steps that should be 0 has no sign.
    let value = if value.abs() < 1e-9 * step { 0.0 } else { value };
    let order = |number: f64| number.abs().log10().floor();
    if !(1e-3..1e6).contains(&largest) {
        if value == 0.0 {
            return "0".into();
        }
        let digits = usize::try_from(whole(order(value) - order(step))).unwrap_or(0).min(12);
        return power(&format!("{value:.digits$e}"));
    }
    let decimals = (0..12)
        .find(|&d| {
            let scaled = step * 10_f64.powi(d);
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        })
        .map_or(12, |d| usize::try_from(d).unwrap_or(12));
    with_minus(&format!("{value:.decimals$}"))
}

#[expect(clippy::cast_possible_truncation, reason = "orders of numbers lie within ±640")]
fn whole(number: f64) -> i32 {
    number as i32
}

fn plain_or_power(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        power(&format!("{value:.1e}"))
    }
}

/// `1.20e6` as 1.2×10⁶, `1.0e-4` as 10⁻⁴.
fn power(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return with_minus(text) };
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let raised: String = exponent
        .chars()
        .map(|c| match c.to_digit(10) {
            Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
            None => '⁻',
        })
        .collect();
    match mantissa {
        "1" => format!("10{raised}"),
        "-1" => format!("−10{raised}"),
        _ => format!("{}×10{raised}", with_minus(mantissa)),
    }
}

/// A minus is as long as a plus is wide, a hyphen is not.
fn with_minus(text: &str) -> String {
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, scale: Scale) -> Vec<String> {
        Axis::new(low, high, scale, 5).ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(-2.0, 2.0, Scale::Linear), ["−2", "−1", "0", "1", "2"]);
        assert_eq!(labels(0.0, 0.5, Scale::Linear), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(0.0, 3e6, Scale::Linear), ["0", "10⁶", "2×10⁶", "3×10⁶"]);
        assert_eq!(labels(0.0, 1200.0, Scale::Linear), ["0", "500", "1000"]);
        assert_eq!(labels(0.0, 5e-5, Scale::Linear)[1..3], ["10⁻⁵", "2×10⁻⁵"]);
        assert_eq!(labels(1.25e6, 1.75e6, Scale::Linear)[..2], ["1.3×10⁶", "1.4×10⁶"]);
        assert_eq!(labels(0.5, 0.500_04, Scale::Linear)[..2], ["0.50000", "0.50001"]);
        assert_eq!(labels(-0.2, 0.2, Scale::Linear)[2], "0.0");
        assert_eq!(labels(1e-4, 1.0, Scale::Logarithmic), ["10⁻⁴", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(0.05, 0.6, Scale::Logarithmic), ["0.05", "0.1", "0.2", "0.3", "0.5"]);
    }

    #[test]
    fn logarithmic_axes_have_small_ticks_between() {
        let minor = |low, high, scale| Axis::new(low, high, scale, 5).minor;
        assert_eq!(minor(0.95, 20.0, Scale::Logarithmic), [4.0, 6.0, 7.0, 8.0, 9.0]);
        assert_eq!(minor(1e-4, 1.0, Scale::Logarithmic).len(), 4 * 8);
        assert!(minor(1e-9, 1.0, Scale::Logarithmic).is_empty());
        assert!(minor(0.0, 1.0, Scale::Linear).is_empty());
    }

    #[test]
    fn odd_ranges_still_give_an_axis() {
        for (low, high) in [(0.0, 0.0), (f64::NAN, 1.0), (3.0, 3.0), (-1.0, f64::INFINITY)] {
            for scale in [Scale::Linear, Scale::Logarithmic] {
                let axis = Axis::new(low, high, scale, 5);
                assert!(axis.ticks.len() >= 2, "{low} {high} {scale:?}");
                assert!(axis.ticks.iter().all(|t| (-0.01..1.01).contains(&axis.position(t.value))));
            }
        }
    }
}
