//! Axes: where the ticks stand and what they say.

/// How numbers are laid out along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
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
        Self { low, high, scale, ticks }
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

/// With as many decimals as the step needs, or as a power of ten where that would be long.
fn number(value: f64, step: f64, largest: f64) -> String {
    if largest >= 1e6 || step < 1e-4 {
        return if value == 0.0 { "0".into() } else { trim_power(&format!("{value:.2e}")) };
    }
    let decimals: usize = (0..6)
        .find(|&d| {
            let scaled = step * 10_f64.powi(d);
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        })
        .map_or(6, |d| usize::try_from(d).unwrap_or(6));
    let text = format!("{value:.decimals$}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

fn plain_or_power(value: f64) -> String {
    if (1e-3..1e5).contains(&value) {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        trim_power(&format!("{value:.1e}"))
    }
}

/// `1.20e6` as `1.2e6`, `1.0e-4` as `1e-4`.
fn trim_power(text: &str) -> String {
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, scale: Scale) -> Vec<String> {
        Axis::new(low, high, scale, 5).ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(-2.0, 2.0, Scale::Linear), ["-2", "-1", "0", "1", "2"]);
        assert_eq!(labels(0.0, 0.5, Scale::Linear), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(labels(0.0, 3e6, Scale::Linear), ["0", "1e6", "2e6", "3e6"]);
        assert_eq!(labels(0.0, 1200.0, Scale::Linear), ["0", "500", "1000"]);
        assert_eq!(labels(1e-4, 1.0, Scale::Logarithmic), ["1e-4", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(labels(0.05, 0.6, Scale::Logarithmic), ["0.05", "0.1", "0.2", "0.3", "0.5"]);
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
