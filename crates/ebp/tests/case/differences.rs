//! Central differences, and the small networks they are affordable on.
//!
//! In f64 with h = 1e-5 they err by O(h²) = 1e-10 times a third derivative of order at most a
//! hundred, plus rounding 1e-16/h = 1e-11; hence the tolerance 1e-7 (1 + max |gradient|).

use ebp::point::{ContextAt, MlpConfig};

use super::{ACTIVATIONS, Spec, largest};

const H: f64 = 1e-5;
/// A step h in any variable must not cross a kink, a clip limit or a wall.
pub(crate) const CLEARANCE: f64 = 1e-3;

/// Compares `gradient` with central differences of `loss` at `point`, entry by entry.
#[track_caller]
pub(crate) fn check(what: &str, point: &[f64], gradient: &[f64], loss: impl Fn(&[f64]) -> f64) {
    assert_eq!(point.len(), gradient.len(), "{what}: length");
    let tolerance = 1e-7 * (1.0 + largest(gradient));
    let mut nudged = point.to_vec();
    for (j, &analytic) in gradient.iter().enumerate() {
        nudged[j] = point[j] + H;
        let above = loss(&nudged);
        nudged[j] = point[j] - H;
        let below = loss(&nudged);
        nudged[j] = point[j];
        let numeric = (above - below) / (2.0 * H);
        let error = (analytic - numeric).abs();
        assert!(error < tolerance, "{what}[{j}]: {analytic} against {numeric}");
    }
}

/// Small networks of every depth, activation and way of the context.
pub(crate) fn specs(output_dim: usize) -> Vec<Spec> {
    let mut specs = Vec::new();
    for activation in ACTIVATIONS {
        for (k, widths) in [vec![], vec![6], vec![7, 5], vec![5, 6, 4]].into_iter().enumerate() {
            let config = MlpConfig {
                hidden_widths: widths,
                context_at: [ContextAt::FirstLayer, ContextAt::EveryLayer][k % 2],
                activate_output: k % 3 == 1,
                activation,
                output_dim,
                ..Spec::default().config
            };
            specs.push(Spec { config, sizes: vec![2, 1], seed: k as u64, ..Spec::default() });
        }
    }
    specs
}
