//! How heavy the tail of importance weights is: Pareto k̂ (Vehtari, Simpson, Gelman, Yao and Gabry,
//! *Pareto smoothed importance sampling*), with the fit of Zhang and Stephens (2009).
//!
//! ```text
//! w − c | w > c  ~  generalised Pareto(k, σ),   c: the M-th largest weight,   M = min(S/5, 3√S)
//! ```
//!
//! Moments of order 1/k and above do not exist. Below [`HOLDS`] a mean of weights and its standard
//! error can be believed; above, the largest weight seen decides, and more draws would move the mean
//! by more than its error says.

/// k̂ below which a mean of weights and its error hold.
pub const HOLDS: f64 = 0.7;
/// Fewer weights in the tail say nothing about it.
const FEWEST: usize = 5;

/// Weights that differ by a smaller share are equal: the tail would be one of rounding.
const FLAT: f64 = 1e-4;

/// k̂ of weights by their logarithms: `None` if there are too few (below 21) to tell or one is not a
/// number, −∞ if all are equal.
///
/// ```
/// use ebp::process::pareto_shape;
///
/// // Weights u^(−1/2) of u = (i − ½)/S have a Pareto tail of shape ½.
/// let weights: Vec<f64> = (0..1000).map(|i| -0.5 * ((f64::from(i) + 0.5) / 1000.0).ln()).collect();
/// let k = pareto_shape(&weights).unwrap();
/// assert!((k - 0.5).abs() < 0.1);
/// assert!(pareto_shape(&weights[..20]).is_none());
/// ```
pub fn pareto_shape(log_weights: &[f64]) -> Option<f64> {
    let count = log_weights.len();
    let largest = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() || log_weights.iter().any(|w| w.is_nan()) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small and positive"
    )]
    let wanted = (count as f64 / 5.0).min(3.0 * (count as f64).sqrt()).ceil() as usize;
    if wanted < FEWEST {
        return None;
    }
    let mut weights: Vec<f64> = log_weights.iter().map(|w| (w - largest).exp()).collect();
    weights.sort_by(f64::total_cmp);
    // The largest weight outside of the tail; a weight of zero is as good as the least number.
    let cut = weights[count - wanted - 1].max(f64::MIN_POSITIVE);
    let tail: Vec<f64> = weights.into_iter().filter(|w| *w > cut).map(|w| w - cut).collect();
    let is_flat = tail.last().is_none_or(|most| *most < FLAT * cut);
    match tail.len() {
        _ if is_flat => Some(f64::NEG_INFINITY),
        found if found < FEWEST => None,
        _ => Some(fit(&tail)),
    }
}

/// k of ascending exceedances: the mean of a quadrature over b = −k/σ under a weak prior, drawn to
/// ½ as if by ten more.
fn fit(tail: &[f64]) -> f64 {
    let n = tail.len() as f64;
    let num_nodes = 30 + tail.len().isqrt();
    let quartile = tail[(tail.len() + 2) / 4 - 1];
    let last = tail[tail.len() - 1];
    let shape = |b: f64| tail.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / n;
    let nodes: Vec<(f64, f64)> = (0..num_nodes)
        .map(|node| {
            let root = (num_nodes as f64 / (node as f64 + 0.5)).sqrt();
            let b = (1.0 - root) / (3.0 * quartile) + 1.0 / last;
            let k = shape(b);
            // The log-likelihood with σ = −k/b put in.
            (b, n * ((-b / k).ln() - k - 1.0))
        })
        .filter(|(_, log_likelihood)| log_likelihood.is_finite())
        .collect();
    let top = nodes.iter().map(|node| node.1).fold(f64::NEG_INFINITY, f64::max);
    let (sum, total) = nodes.iter().fold((0.0, 0.0), |(sum, total), (b, log_likelihood)| {
        let weight = (log_likelihood - top).exp();
        (sum + weight * b, total + weight)
    });
    let drawn = 10.0;
    (n * shape(sum / total) + 0.5 * drawn) / (n + drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(count: u32) -> impl Iterator<Item = f64> {
        (0..count).map(move |i| (f64::from(i) + 0.5) / f64::from(count))
    }

    /// Values of arviz 0.23.4 (`tools/reference/pareto.py`).
    #[test]
    fn shapes_are_those_of_arviz() {
        for (shape, count, expected) in [
            (0.1, 25, 0.400_465_001_7),
            (0.1, 100, 0.261_652_557_6),
            (0.1, 1000, 0.149_964_267_5),
            (0.5, 25, 0.502_247_284),
            (0.5, 100, 0.491_960_020_2),
            (0.5, 1000, 0.497_085_961_3),
            (0.9, 25, 0.604_211_733_8),
            (0.9, 100, 0.720_596_743_5),
            (0.9, 1000, 0.844_266_433_4),
            (1.5, 25, 0.756_550_297_5),
            (1.5, 100, 1.064_675_269_9),
            (1.5, 1000, 1.365_035_898_7),
        ] {
            // Far down, and in the other order.
            let mut weights: Vec<f64> = places(count).map(|u| -900.0 - shape * u.ln()).collect();
            weights.reverse();
            let found = pareto_shape(&weights).unwrap();
            assert!((found - expected).abs() < 1e-8, "{shape} {count}: {found} {expected}");
        }
        let logistic: Vec<f64> = places(200).map(|u| 2.0 * (u / (1.0 - u)).ln()).collect();
        assert!((pareto_shape(&logistic).unwrap() - 1.656_669_400_6).abs() < 1e-8);
        let bounded: Vec<f64> = places(200).map(f64::ln).collect();
        assert!((pareto_shape(&bounded).unwrap() + 0.636_013_306_1).abs() < 1e-8);
    }

    #[test]
    fn what_has_no_tail_is_said() {
        assert_eq!(pareto_shape(&[-3.0; 40]), Some(f64::NEG_INFINITY));
        assert_eq!(pareto_shape(&[0.0, 1.0, 2.0]), None);
        assert_eq!(pareto_shape(&[]), None);
        let mut weights = vec![0.0; 40];
        weights[3] = f64::NAN;
        assert_eq!(pareto_shape(&weights), None);
        assert_eq!(pareto_shape(&[f64::NEG_INFINITY; 40]), None);
        // One weight is all there is: as heavy as can be told, and not taken for a good one.
        weights[3] = 800.0;
        assert_eq!(pareto_shape(&weights), None);
    }
}
