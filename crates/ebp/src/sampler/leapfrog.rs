//! Leapfrog steps from a normal momentum, plain or with networks in them (Dai et al., 2019, after Levy et al.,
//! 2018):
//!
//! ```text
//! plain         v ← v + (η/2) g(x),   x ← x + η v,   v ← v + (η/2) g(x)
//!
//! generalized   v ← e^S v + (η/2) (g + T),    (S, T) of g, x          a kick
//!               x ← e^R x + η (v + U),        (R, U) of v             a drift
//!               v ← e^S v + (η/2) (g + T),    (S, T) of g, x          a kick, where x is now
//! ```
//!
//! with g = clip(∇ₓu) at x. One network writes S and T, one R and U; both also read the location and θ of
//! their element, and serve all steps. Each of the three maps is affine in what it changes, given what it keeps: log |det|
//! is the sum of its S or R, and the map is solved for what it was given,
//!
//! ```text
//! v = e^{−S} (v′ − (η/2) (g + T)),
//! ```
//!
//! so a step is walked back by its maps in the other order, which is the same order. Scales are tanh of what the
//! network says, so that a map scales by less than e. Networks end in zeros at the start: plain leapfrog.
//!
//! ```text
//! L = log q₀ + (‖v_T‖² − ‖v₀‖²)/2 − Σ (S + R)
//! ```

use super::dynamics::{Slopes, WalkedBack, kinetic, points};
use super::{Draws, Followed};
use crate::Result;
use crate::energy::element_rows;
use crate::nn::{Initialiser, Network, Sets};
use crate::point::{Activation, ContextAt, MlpConfig};
use crate::recipe::{Dynamics, SamplerConfig};
use crate::rng::Stream;
use crate::tape::{Group, Parameter, Tape, Var};

#[derive(Clone, Debug)]
pub(super) struct LeapfrogLayers {
    num_steps: usize,
    slopes: Slopes,
    log_step_sizes: Parameter,
    networks: Option<Networks>,
}

/// What writes scales and shifts.
#[derive(Clone, Debug)]
struct Networks {
    /// (S, T) of (g, x).
    kick: Network,
    /// (R, U) of v.
    drift: Network,
}

/// Where draws are, with their momenta `[draws, d]`.
#[derive(Clone, Copy, Debug)]
struct State {
    values: Var,
    momentum: Var,
}

/// Which way a map is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Forth,
    Back,
}

impl LeapfrogLayers {
    #[expect(clippy::cast_possible_truncation, reason = "networks compute in f32")]
    pub(super) fn new(
        config: &SamplerConfig,
        (dims, num_features, latent_dim): (usize, usize, usize),
        slopes: Slopes,
        group: &mut Group<'_>,
    ) -> Result<Self> {
        let start = Initialiser::Constant(config.step_size.ln() as f32);
        let num_steps = config.num_dynamics_steps;
        let log_step_sizes = group.trained("log_step_sizes", &[num_steps], start)?;
        let mut network = |name: &str, value_dim: usize| -> Result<Network> {
            let config = MlpConfig {
                value_dim,
                location_dim: num_features,
                context_dim: latent_dim,
                hidden_widths: config.dynamics_widths.clone(),
                output_dim: 2 * dims,
                activation: Activation::Silu,
                context_at: ContextAt::FirstLayer,
                activate_output: false,
            };
            let network = Network::new(group, name, config)?;
            let last = network.shape().layers()[network.shape().layers().len() - 1].clone();
            let flat = group.values_mut(network.parameters());
            flat[last.weight].fill(0.0);
            flat[last.bias].fill(0.0);
            Ok(network)
        };
        let networks = if config.dynamics == Dynamics::GeneralizedHamiltonian {
            Some(Networks { kick: network("kick", 2 * dims)?, drift: network("drift", dims)? })
        } else {
            None
        };
        Ok(Self { num_steps, slopes, log_step_sizes, networks })
    }

    /// Moves draws.
    pub(super) fn run(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: Draws,
        stream: Stream,
    ) -> Result<Draws> {
        let momentum = tape.normals(tape.shape(draws.values), stream.child(0))?;
        let start = State { values: draws.values, momentum };
        let (end, log_det) = self.walk(tape, followed, &draws, start, Way::Forth)?;
        let gained = gained(tape, [start, end], log_det)?;
        let log_density = tape.add(draws.log_density, gained)?;
        Ok(Draws { values: end.values, log_density, ..draws })
    }

    /// Walks back from values that follow the law of the energy, with momenta that follow theirs.
    pub(super) fn walk_back(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        ends: &Draws,
        stream: Stream,
    ) -> Result<WalkedBack> {
        let momentum = tape.normals(tape.shape(ends.values), stream.child(0))?;
        let end = State { values: ends.values, momentum };
        let (start, log_det) = self.walk(tape, followed, ends, end, Way::Back)?;
        Ok(WalkedBack { values: start.values, gained: gained(tape, [start, end], log_det)? })
    }

    /// All steps one way, and log |det| of their way forth, `[draws, 1]`, where it is not 0.
    fn walk(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: &Draws,
        state: State,
        way: Way,
    ) -> Result<(State, Option<Var>)> {
        let log_step_sizes = tape.parameter(&self.log_step_sizes)?;
        let step_sizes = tape.exp(log_step_sizes)?;
        let mut steps: Vec<usize> = (0..self.num_steps).collect();
        if way == Way::Back {
            steps.reverse();
        }
        let mut sizes = Vec::with_capacity(steps.len());
        for step in steps {
            sizes.push(tape.columns(step_sizes, step, 1)?);
        }
        match &self.networks {
            None => Ok((self.plain(tape, followed, draws, state, (&sizes, way))?, None)),
            Some(networks) => {
                let written = Written { networks, followed, draws, way };
                let (state, log_det) = self.generalized(tape, &written, state, &sizes)?;
                Ok((state, Some(log_det)))
            }
        }
    }

    /// Plain steps; back with the momentum turned around.
    fn plain(
        &self,
        tape: &mut Tape,
        followed: Followed<'_>,
        draws: &Draws,
        state: State,
        (sizes, way): (&[Var], Way),
    ) -> Result<State> {
        let turn = if way == Way::Back { -1.0 } else { 1.0 };
        let sizes = tape.concat(sizes)?;
        let momentum = tape.affine(state.momentum, turn, 0.0)?;
        let points = points(tape, followed, draws, state.values)?;
        let run = tape.leapfrog(&points, momentum, sizes, &self.slopes.rules())?;
        Ok(State { values: run.values, momentum: tape.affine(run.momentum, turn, 0.0)? })
    }

    fn generalized(
        &self,
        tape: &mut Tape,
        written: &Written<'_>,
        mut state: State,
        sizes: &[Var],
    ) -> Result<(State, Var)> {
        let slope = |tape: &mut Tape, values: Var| {
            self.slopes.at(tape, written.followed, written.draws, values)
        };
        let kick = |tape: &mut Tape, state: State, slope: Var, size: Var| -> Result<(Var, Var)> {
            let seen = tape.affine(slope, self.slopes.unit(), 0.0)?;
            let seen = tape.concat(&[seen, state.values])?;
            let half = tape.affine(size, 0.5, 0.0)?;
            let kick = &written.networks.kick;
            written.affine(tape, (kick, seen), (half, slope), state.momentum)
        };
        let mut here = slope(tape, state.values)?;
        let mut log_det: Option<Var> = None;
        let mut count = |tape: &mut Tape, gained: Var| -> Result<()> {
            log_det = Some(match log_det {
                Some(sum) => tape.add(sum, gained)?,
                None => gained,
            });
            Ok(())
        };
        for &size in sizes {
            let (momentum, gained) = kick(tape, state, here, size)?;
            state.momentum = momentum;
            count(tape, gained)?;
            let drift = &written.networks.drift;
            let given = (drift, momentum);
            let (values, gained) = written.affine(tape, given, (size, momentum), state.values)?;
            state.values = values;
            count(tape, gained)?;
            here = slope(tape, values)?;
            let (momentum, gained) = kick(tape, state, here, size)?;
            state.momentum = momentum;
            count(tape, gained)?;
        }
        let nothing = crate::Error::invalid("num_dynamics_steps", "at least 1", 0);
        Ok((state, log_det.ok_or(nothing)?))
    }
}

/// Networks at work on draws, one way.
struct Written<'a> {
    networks: &'a Networks,
    followed: Followed<'a>,
    draws: &'a Draws,
    way: Way,
}

impl Written<'_> {
    /// z ← e^s z + ε (push + t) with (s, t) of a network at what it sees, or back; and Σ s.
    fn affine(
        &self,
        tape: &mut Tape,
        (network, seen): (&Network, Var),
        (size, push): (Var, Var),
        z: Var,
    ) -> Result<(Var, Var)> {
        let dims = tape.shape(z).1;
        let elements = element_rows(tape, seen, self.draws.features)?;
        let context = Some(self.followed.theta);
        let sets = Sets { elements, context, offsets: &self.draws.offsets };
        let said = network.values(tape, sets)?;
        let s = tape.columns(said, 0, dims)?;
        let s = tape.tanh(s)?;
        let t = tape.columns(said, dims, dims)?;
        let shift = tape.add(push, t)?;
        let shift = tape.multiply(shift, size)?;
        let moved = match self.way {
            Way::Forth => {
                let scale = tape.exp(s)?;
                let scaled = tape.multiply(z, scale)?;
                tape.add(scaled, shift)?
            }
            Way::Back => {
                let unscale = tape.affine(s, -1.0, 0.0)?;
                let unscale = tape.exp(unscale)?;
                let centred = tape.subtract(z, shift)?;
                tape.multiply(centred, unscale)?
            }
        };
        Ok((moved, tape.row_sums(s)?))
    }
}

/// (‖v_T‖² − ‖v₀‖²)/2 − log |det|.
fn gained(tape: &mut Tape, [start, end]: [State; 2], log_det: Option<Var>) -> Result<Var> {
    let before = kinetic(tape, start.momentum)?;
    let after = kinetic(tape, end.momentum)?;
    let gained = tape.subtract(after, before)?;
    match log_det {
        Some(log_det) => tape.subtract(gained, log_det),
        None => Ok(gained),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::SetOffsets;
    use crate::energy::ElementEnergy;
    use crate::nn::differences::check;
    use crate::point::{CudaBackend, Precision};
    use crate::recipe::EnergyBasedConfig;
    use crate::tape::{AdamConfig, Device, ParameterBuilder, ParameterSet};

    /// Numbers of a location, and the size of θ.
    const FEATURES: usize = 1;
    const LATENT: usize = 2;
    /// Draws of two sets.
    const SIZES: [usize; 2] = [2, 3];

    /// An energy and steps that follow it, with networks that say something of this strength.
    fn layers(
        dynamics: Dynamics,
        dims: usize,
        strength: f32,
    ) -> (ParameterBuilder, ElementEnergy, LeapfrogLayers) {
        let config = SamplerConfig {
            dynamics,
            num_dynamics_steps: 2,
            dynamics_widths: vec![3],
            step_size: 0.3,
            clip: 100.0,
            ..SamplerConfig::default()
        };
        let model = EnergyBasedConfig {
            latent_dim: LATENT,
            energy_widths: vec![8],
            input_scale: 1.0,
            ..EnergyBasedConfig::points()
        };
        let mut builder = ParameterBuilder::new(1);
        let mut group = builder.group("energy");
        let energy = ElementEnergy::new(&model, (dims, FEATURES), &mut group).unwrap();
        let mut group = builder.group("model");
        let slopes = Slopes::new(&config, Some(1.5));
        let sizes = (dims, FEATURES, LATENT);
        let layers = LeapfrogLayers::new(&config, sizes, slopes, &mut group).unwrap();
        for network in layers.networks.iter().flat_map(|both| [&both.kick, &both.drift]) {
            let flat = group.values_mut(network.parameters());
            let mut noise = vec![0.0; flat.len()];
            Stream::new(7, "weights").fill_normal(0, 0, &mut noise);
            flat.iter_mut().zip(noise).for_each(|(weight, z)| *weight += strength * z);
        }
        (builder, energy, layers)
    }

    /// Draws at `values`, of two sets, and the energy.
    fn begin<'a>(
        tape: &mut Tape,
        energy: &'a ElementEnergy,
        values: Var,
    ) -> Result<(Followed<'a>, Draws)> {
        let total = SIZES.iter().sum();
        let parameters = energy.calibrated(tape, false)?;
        let theta = tape.normals((2, LATENT), Stream::new(3, "theta"))?;
        let features = Some(tape.normals((total, FEATURES), Stream::new(4, "features"))?);
        let zeros = tape.upload(vec![0.0; total], (total, 1))?;
        let draws = Draws {
            values,
            log_density: zeros,
            log_shares: None,
            count: 1,
            features,
            offsets: Arc::new(SetOffsets::from_sizes(SIZES)?),
        };
        Ok((Followed { energy, parameters, theta }, draws))
    }

    /// [x, v] of all draws walked one way, `[draws, 2 d]`, and their log |det|.
    fn walked(
        (builder, energy, layers): &(ParameterSet, ElementEnergy, LeapfrogLayers),
        rows: &[f32],
        way: Way,
    ) -> (Vec<f32>, Vec<f32>) {
        let mut tape = Device::default().tape();
        tape.read(builder);
        let total = SIZES.iter().sum();
        let dims = rows.len() / total / 2;
        let all = tape.upload(rows.to_vec(), (total, 2 * dims)).unwrap();
        let values = tape.columns(all, 0, dims).unwrap();
        let momentum = tape.columns(all, dims, dims).unwrap();
        let (followed, draws) = begin(&mut tape, energy, values).unwrap();
        let state = State { values, momentum };
        let (state, log_det) = layers.walk(&mut tape, followed, &draws, state, way).unwrap();
        let moved = tape.concat(&[state.values, state.momentum]).unwrap();
        let log_det = log_det.map_or(vec![0.0; total], |found| tape.download(found).unwrap());
        (tape.download(moved).unwrap(), log_det)
    }

    fn ready(
        (builder, energy, layers): (ParameterBuilder, ElementEnergy, LeapfrogLayers),
    ) -> (ParameterSet, ElementEnergy, LeapfrogLayers) {
        let device = Device::default();
        let set = ParameterSet::new(builder, &device, AdamConfig::default(), None).unwrap();
        (set, energy, layers)
    }

    fn rows(dims: usize) -> Vec<f32> {
        let mut rows = vec![0.0; SIZES.iter().sum::<usize>() * 2 * dims];
        Stream::new(2, "rows").fill_normal(0, 0, &mut rows);
        rows
    }

    fn assert_near(found: &[f32], expected: &[f32], tolerance: f32, label: &str) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < tolerance, "{label}: {found} {expected}");
        }
    }

    /// ln |det| of a square matrix by elimination with pivots.
    fn log_determinant(mut rows: Vec<Vec<f64>>) -> f64 {
        let mut sum = 0.0;
        for column in 0..rows.len() {
            let largest =
                |a: &usize, b: &usize| rows[*a][column].abs().total_cmp(&rows[*b][column].abs());
            let pivot = (column..rows.len()).max_by(largest).unwrap();
            rows.swap(column, pivot);
            let (above, below) = rows.split_at_mut(column + 1);
            let pivot = &above[column];
            sum += pivot[column].abs().ln();
            for row in below {
                let factor = row[column] / pivot[column];
                row.iter_mut().zip(pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
        sum
    }

    #[test]
    fn networks_that_say_nothing_are_plain_leapfrog() {
        for dims in [1, 3] {
            let plain = ready(layers(Dynamics::Hamiltonian, dims, 0.0));
            let silent = ready(layers(Dynamics::GeneralizedHamiltonian, dims, 0.0));
            let (expected, _) = walked(&plain, &rows(dims), Way::Forth);
            let (found, log_det) = walked(&silent, &rows(dims), Way::Forth);
            assert_near(&found, &expected, 1e-5, "plain");
            assert!(log_det.iter().all(|found| *found == 0.0), "{log_det:?}");
            let loud = ready(layers(Dynamics::GeneralizedHamiltonian, dims, 0.4));
            let (found, _) = walked(&loud, &rows(dims), Way::Forth);
            let moved = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            assert!(moved.fold(0.0, f32::max) > 0.1, "networks must matter");
        }
    }

    /// Back and forth; and log |det| against that of the Jacobian of (x, v) by central differences, one draw
    /// after the other. f32 values carry 1e-6, with h = 1e-2 1e-4 in a quotient; curvature adds h².
    #[test]
    fn steps_are_walked_back_and_the_volume_is_right() {
        for (dynamics, dims) in [
            (Dynamics::Hamiltonian, 2),
            (Dynamics::GeneralizedHamiltonian, 1),
            (Dynamics::GeneralizedHamiltonian, 2),
        ] {
            let case = ready(layers(dynamics, dims, 0.4));
            let start = rows(dims);
            let (end, log_det) = walked(&case, &start, Way::Forth);
            let (back, same) = walked(&case, &end, Way::Back);
            assert_near(&back, &start, 1e-4, "walked back");
            assert_near(&same, &log_det, 1e-4, "log |det|");
            let (h, width) = (1e-2_f32, 2 * dims);
            // Draws do not see each other: all move by h in one coordinate at once.
            let slopes: Vec<Vec<f64>> = (0..width)
                .map(|coordinate| {
                    let shifted = |by: f32| {
                        let mut rows = start.clone();
                        rows.iter_mut().skip(coordinate).step_by(width).for_each(|x| *x += by);
                        walked(&case, &rows, Way::Forth).0
                    };
                    let (up, down) = (shifted(h), shifted(-h));
                    let quotient = |(u, d): (&f32, &f32)| f64::from(u - d) / (2.0 * f64::from(h));
                    up.iter().zip(&down).map(quotient).collect()
                })
                .collect();
            for (draw, found) in log_det.iter().enumerate() {
                let own = |slope: &Vec<f64>| slope[draw * width..(draw + 1) * width].to_vec();
                let expected = log_determinant(slopes.iter().map(own).collect());
                let error = (f64::from(*found) - expected).abs();
                assert!(error < 3e-3, "{dynamics:?} in {dims}: {found} {expected}");
            }
            let is_volume_kept = log_det.iter().all(|found| *found == 0.0);
            assert_eq!(is_volume_kept, dynamics == Dynamics::Hamiltonian);
        }
    }

    /// Through both networks, the slopes and the step sizes to values, momenta and log |det|.
    #[test]
    fn gradients_are_those_of_differences() {
        let (builder, energy, layers) = layers(Dynamics::GeneralizedHamiltonian, 2, 0.4);
        let networks = layers.networks.clone().unwrap();
        let parameters = [
            ("kick", *networks.kick.parameters()),
            ("drift", *networks.drift.parameters()),
            ("log_step_sizes", layers.log_step_sizes),
        ];
        check(builder, &parameters, |tape| {
            let total = SIZES.iter().sum();
            let values = tape.normals((total, 2), Stream::new(5, "values"))?;
            let momentum = tape.normals((total, 2), Stream::new(6, "momenta"))?;
            let (followed, draws) = begin(tape, &energy, values)?;
            let state = State { values, momentum };
            let (state, log_det) = layers.walk(tape, followed, &draws, state, Way::Forth)?;
            tape.concat(&[state.values, state.momentum, log_det.unwrap()])
        });
    }

    /// Ends, log |det| and the gradients of all layers, on both devices; sums in another order leave the
    /// rounding of f32.
    #[test]
    fn the_gpu_walks_as_the_cpu_does() {
        let gpu = match CudaBackend::new(0, Precision::F32) {
            Ok(backend) => Device::Cuda(backend),
            Err(reason) => {
                #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
                {
                    eprintln!("SKIPPED, no GPU is tested: {reason}");
                }
                return;
            }
        };
        let on = |device: &Device| -> Vec<Vec<f32>> {
            let (builder, energy, layers) = layers(Dynamics::GeneralizedHamiltonian, 3, 0.3);
            let set = ParameterSet::new(builder, device, AdamConfig::default(), None).unwrap();
            let mut tape = device.tape();
            tape.train(&set);
            let values = tape.normals((5, 3), Stream::new(5, "values")).unwrap();
            let momentum = tape.normals((5, 3), Stream::new(6, "momenta")).unwrap();
            let (followed, draws) = begin(&mut tape, &energy, values).unwrap();
            let state = State { values, momentum };
            let walked = layers.walk(&mut tape, followed, &draws, state, Way::Forth).unwrap();
            let (state, log_det) = (walked.0, walked.1.unwrap());
            let all = tape.concat(&[state.values, state.momentum, log_det]).unwrap();
            let squares = tape.square(all).unwrap();
            let loss = tape.sum(squares).unwrap();
            let networks = layers.networks.as_ref().unwrap();
            let ends = tape.download(all).unwrap();
            let gradients = tape.backward(loss).unwrap();
            let of = |parameter| gradients.of(parameter, device).unwrap().unwrap();
            vec![
                ends,
                of(networks.kick.parameters()),
                of(networks.drift.parameters()),
                of(&layers.log_step_sizes),
            ]
        };
        for (found, expected) in on(&gpu).iter().zip(on(&Device::default())) {
            let largest = expected.iter().fold(1.0_f32, |largest, x| largest.max(x.abs()));
            assert_near(found, &expected, 1e-4 * largest, "GPU");
        }
    }
}
