//! Starting values of parameters, drawn from a [`Stream`] and nothing else.

use crate::rng::Stream;
use crate::{Error, Result};

/// A law for the starting values of a tensor.
///
/// For a matrix `[out, in]` the fan-in is `in` and the fan-out `out`; further dimensions (a
/// convolution's window) multiply both. A vector has fan-in 1, so give biases a law of their own.
///
/// ```
/// use ebp::nn::Initialiser;
/// use ebp::rng::Stream;
///
/// let draw = |name| Initialiser::He.draw(&[64, 32], Stream::new(7, name));
/// assert_eq!(draw("energy.weight")?, draw("energy.weight")?);
/// assert_ne!(draw("energy.weight")?, draw("encoder.weight")?);
/// # Ok::<(), ebp::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initialiser {
    /// 0.
    Zeros,
    /// 1.
    Ones,
    /// The same number everywhere.
    Constant(f32),
    /// Gaussian with this mean and standard deviation.
    Normal {
        /// Mean.
        mean: f32,
        /// Standard deviation.
        std_dev: f32,
    },
    /// U(low, high).
    Uniform {
        /// Lower end.
        low: f32,
        /// Upper end.
        high: f32,
    },
    /// N(0, 2 / fan-in): keeps the size of activations under `ReLU` (He et al., 2015).
    He,
    /// U(−b, b), b = √(6 / (fan-in + fan-out)) (Glorot and Bengio, 2010).
    Xavier,
    /// U(−b, b), b = 1 / √fan-in: PyTorch's linear layers.
    FanIn,
    /// gain · Q, where Q has orthonormal rows or columns, whichever are fewer (Saxe et al., 2014).
    /// Dimensions after the first count as columns.
    Orthogonal {
        /// The common singular value.
        gain: f32,
    },
}

impl Initialiser {
    /// Draws a tensor of shape `shape`, row-major; the same stream gives the same bytes.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] if the orthogonal law is asked for fewer than two dimensions.
    pub fn draw(self, shape: &[usize], stream: Stream) -> Result<Vec<f32>> {
        let window: usize = shape.iter().skip(2).product();
        let fan_in = (shape.get(1).copied().unwrap_or(1) * window).max(1) as f32;
        let fan_out = (shape.first().copied().unwrap_or(1) * window).max(1) as f32;
        let mut values = vec![0.0; shape.iter().product()];
        match self {
            Self::Zeros => {}
            Self::Ones => values.fill(1.0),
            Self::Constant(constant) => values.fill(constant),
            Self::Normal { mean, std_dev } => normal(&mut values, mean, std_dev, stream),
            Self::Uniform { low, high } => uniform(&mut values, low, high, stream),
            Self::He => normal(&mut values, 0.0, (2.0 / fan_in).sqrt(), stream),
            Self::Xavier => {
                let bound = (6.0 / (fan_in + fan_out)).sqrt();
                uniform(&mut values, -bound, bound, stream);
            }
            Self::FanIn => {
                let bound = 1.0 / fan_in.sqrt();
                uniform(&mut values, -bound, bound, stream);
            }
            Self::Orthogonal { gain } => {
                let [rows, rest @ ..] = shape else {
                    return Err(Error::invalid("shape", "a matrix for orthogonal weights", "[]"));
                };
                if rest.is_empty() {
                    return Err(Error::invalid(
                        "shape",
                        "a matrix for orthogonal weights",
                        format!("{shape:?}"),
                    ));
                }
                orthogonal(&mut values, *rows, rest.iter().product(), gain, stream);
            }
        }
        Ok(values)
    }
}

fn normal(values: &mut [f32], mean: f32, std_dev: f32, stream: Stream) {
    stream.fill_normal(0, 0, values);
    for value in values {
        *value = mean + std_dev * *value;
    }
}

fn uniform(values: &mut [f32], low: f32, high: f32, stream: Stream) {
    stream.fill_uniform(0, 0, values);
    for value in values {
        *value = low + (high - low) * *value;
    }
}

/// Gram and Schmidt on Gaussian vectors, in f64.
fn orthogonal(values: &mut [f32], rows: usize, columns: usize, gain: f32, stream: Stream) {
    let (count, length) = (rows.min(columns), rows.max(columns));
    stream.fill_normal(0, 0, values);
    let mut vectors: Vec<Vec<f64>> = (0..count)
        .map(|i| values[i * length..(i + 1) * length].iter().map(|&x| f64::from(x)).collect())
        .collect();
    for i in 0..count {
        let (done, rest) = vectors.split_at_mut(i);
        let vector = &mut rest[0];
        // Twice is enough: one pass leaves rounding errors that grow with the condition number,
        // the second removes them.
        for _ in 0..2 {
            for basis in done.iter() {
                let overlap: f64 = vector.iter().zip(basis).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(basis).for_each(|(a, b)| *a -= overlap * b);
            }
        }
        let norm = vector.iter().map(|a| a * a).sum::<f64>().sqrt();
        for entry in vector {
            *entry /= norm;
        }
    }
    for row in 0..rows {
        for column in 0..columns {
            let entry = if rows <= columns { vectors[row][column] } else { vectors[column][row] };
            #[expect(clippy::cast_possible_truncation, reason = "parameters are f32")]
            let entry = entry as f32;
            values[row * columns + column] = gain * entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sample variance of n draws within 4 standard errors; (κ − 1)/n is the relative variance of
    /// the estimate, with kurtosis κ = 3 for normals and 9/5 for uniforms.
    fn check_variance(initialiser: Initialiser, shape: &[usize], expected: f64, kurtosis: f64) {
        let values = initialiser.draw(shape, Stream::new(5, "weight")).unwrap();
        let n = values.len() as f64;
        let variance = values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n;
        let tolerance = 4.0 * ((kurtosis - 1.0) / n).sqrt();
        assert!((variance / expected - 1.0).abs() < tolerance, "{initialiser:?}: {variance}");
    }

    #[test]
    fn laws_have_their_variance() {
        let shape = [120, 300];
        check_variance(Initialiser::He, &shape, 2.0 / 300.0, 3.0);
        check_variance(Initialiser::Xavier, &shape, 2.0 / 420.0, 1.8);
        check_variance(Initialiser::FanIn, &shape, 1.0 / 900.0, 1.8);
        check_variance(Initialiser::He, &[64, 10, 3, 3], 2.0 / 90.0, 3.0);
    }

    #[test]
    fn constants_are_constant() {
        let draw = |initialiser: Initialiser| initialiser.draw(&[2], Stream::new(1, "b")).unwrap();
        assert_eq!(draw(Initialiser::Zeros), [0.0, 0.0]);
        assert_eq!(draw(Initialiser::Ones), [1.0, 1.0]);
        assert_eq!(draw(Initialiser::Constant(-3.5)), [-3.5, -3.5]);
    }

    #[test]
    fn orthogonal_rows_or_columns_are_orthonormal() {
        for (rows, columns) in [(5, 9), (9, 5), (6, 6)] {
            let values = Initialiser::Orthogonal { gain: 2.0 }
                .draw(&[rows, columns], Stream::new(3, "q"))
                .unwrap();
            let at = |i: usize, j: usize| {
                f64::from(if rows <= columns {
                    values[i * columns + j]
                } else {
                    values[j * columns + i]
                })
            };
            for a in 0..rows.min(columns) {
                for b in 0..=a {
                    let dot: f64 = (0..rows.max(columns)).map(|j| at(a, j) * at(b, j)).sum();
                    let expected = if a == b { 4.0 } else { 0.0 };
                    assert!((dot - expected).abs() < 1e-5, "{rows} x {columns}: {dot}");
                }
            }
        }
        assert!(Initialiser::Orthogonal { gain: 1.0 }.draw(&[4], Stream::new(3, "q")).is_err());
    }
}
