//! The activations σ of a [`PointMlp`](super::PointMlp), with their first two derivatives.
//!
//! The formulas here are the definition, in f64. The SIMD kernels evaluate the same functions
//! in f32, and tests compare the two.

use serde::{Deserialize, Serialize};

/// An activation σ, applied to each hidden unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(z, 0).
    Relu,
    /// z for z > 0, else `slope`·z, with the usual slope 0.01 in [`Activation::LEAKY_RELU`].
    LeakyRelu {
        /// The slope on the negative side, in [0, 1).
        slope: f32,
    },
    /// z / (1 + e⁻ᶻ), also called swish.
    Silu,
    /// log(1 + eᶻ).
    Softplus,
    /// tanh z.
    Tanh,
}

impl Activation {
    /// Leaky ReLU with the usual slope 0.01.
    pub const LEAKY_RELU: Self = Self::LeakyRelu { slope: 0.01 };

    /// The name used in configurations and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::LeakyRelu { .. } => "leaky-relu",
            Self::Silu => "silu",
            Self::Softplus => "softplus",
            Self::Tanh => "tanh",
        }
    }

    /// Whether σ″ vanishes almost everywhere, which removes every second-order term.
    pub fn is_piecewise_linear(self) -> bool {
        matches!(self, Self::Relu | Self::LeakyRelu { .. })
    }

    /// The slope on the negative side, if σ is a rectifier.
    pub(crate) fn leak(self) -> Option<f32> {
        match self {
            Self::Relu => Some(0.0),
            Self::LeakyRelu { slope } => Some(slope),
            Self::Silu | Self::Softplus | Self::Tanh => None,
        }
    }

    /// Whether σ never decreases, so that max σ(z) = σ(max z).
    pub fn is_monotone(self) -> bool {
        !matches!(self, Self::Silu)
    }

    /// σ(z).
    pub fn value(self, z: f64) -> f64 {
        match self {
            Self::Relu => z.max(0.0),
            Self::LeakyRelu { slope } => {
                if z > 0.0 {
                    z
                } else {
                    f64::from(slope) * z
                }
            }
            Self::Silu => z * sigmoid(z),
            Self::Softplus => z.max(0.0) + (-z.abs()).exp().ln_1p(),
            Self::Tanh => z.tanh(),
        }
    }

    /// σ′(z); at the kink of a piecewise linear σ, the slope of the left side.
    pub fn slope(self, z: f64) -> f64 {
        match self {
            Self::Relu => f64::from(u8::from(z > 0.0)),
            Self::LeakyRelu { slope } => {
                if z > 0.0 {
                    1.0
                } else {
                    f64::from(slope)
                }
            }
            // s (1 + z (1 − s)), s = sigmoid z
            Self::Silu => sigmoid(z) * (1.0 + z * sigmoid(-z)),
            Self::Softplus => sigmoid(z),
            Self::Tanh => 1.0 - z.tanh().powi(2),
        }
    }

    /// σ″(z); zero for piecewise linear σ.
    pub fn curvature(self, z: f64) -> f64 {
        match self {
            Self::Relu | Self::LeakyRelu { .. } => 0.0,
            // s (1 − s) (2 + z (1 − 2 s))
            Self::Silu => {
                let s = sigmoid(z);
                s * sigmoid(-z) * (2.0 + z * (1.0 - 2.0 * s))
            }
            Self::Softplus => sigmoid(z) * sigmoid(-z),
            Self::Tanh => -2.0 * z.tanh() * (1.0 - z.tanh().powi(2)),
        }
    }
}

/// 1 / (1 + e⁻ᶻ)
fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 5] = [
        Activation::Relu,
        Activation::LEAKY_RELU,
        Activation::Silu,
        Activation::Softplus,
        Activation::Tanh,
    ];

    /// Central differences: error O(h²) = 1e-10 times a third derivative of order one.
    #[test]
    fn derivatives_match_central_differences() {
        let h = 1e-5;
        for activation in ALL {
            for z in [-7.3, -2.1, -0.4, 0.3, 1.9, 6.5] {
                let slope = (activation.value(z + h) - activation.value(z - h)) / (2.0 * h);
                let curvature = (activation.slope(z + h) - activation.slope(z - h)) / (2.0 * h);
                assert!((activation.slope(z) - slope).abs() < 1e-9, "{activation:?} at {z}");
                assert!(
                    (activation.curvature(z) - curvature).abs() < 1e-9,
                    "{activation:?} at {z}"
                );
            }
        }
    }

    #[test]
    fn softplus_does_not_overflow() {
        assert!((Activation::Softplus.value(800.0) - 800.0).abs() < 1e-12);
        assert!(Activation::Softplus.value(-800.0) >= 0.0);
    }
}
