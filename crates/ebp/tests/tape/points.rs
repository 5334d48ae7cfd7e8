//! The primitive on the tape: values, sums, scores, pools, partitions, likelihoods and dynamics.

use std::sync::Arc;

use ebp::SetOffsets;
use ebp::point::{Activation, Bounds, Clip, ContextAt, MlpConfig, MlpShape, Motion, Pooling};
use ebp::rng::Stream;
use ebp::tape::{CandidateVars, DrawDomain, MotionRules, Points, Shape, Tape, Var};

use super::{Case, Input, Outputs, fixed, random, scaled};
use crate::twin::{Anchors, LangevinPlan, LeapfrogPlan, Network, Sets};

pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for setting in [Setting::one_row(), Setting::curves(), Setting::clouds()] {
        cases.extend(setting.networks());
        for is_shared in [false, true] {
            for has_weights in [false, true] {
                cases.push(setting.log_partition(is_shared, has_weights));
                cases.push(setting.likelihood(is_shared, has_weights));
            }
        }
        cases.extend(setting.dynamics());
    }
    cases.extend([weigh_draws(1, None), weigh_draws(3, Some(0.8))]);
    cases.push(weight_figures((1, 5), None, false));
    cases.push(weight_figures((7, 19), Some((7, 19)), true));
    cases.push(weight_figures((7, 19), Some((1, 19)), true));
    cases
}

/// A network and sets of elements.
#[derive(Clone)]
struct Setting {
    config: MlpConfig,
    sizes: &'static [usize],
}

impl Setting {
    /// A single element, no location and no context, linear.
    fn one_row() -> Self {
        let config = MlpConfig {
            value_dim: 1,
            context_dim: 0,
            hidden_widths: vec![3],
            activation: Activation::Tanh,
            ..MlpConfig::default()
        };
        Self { config, sizes: &[1] }
    }

    /// A location and a context, smooth.
    fn curves() -> Self {
        let config = MlpConfig {
            value_dim: 2,
            location_dim: 1,
            context_dim: 3,
            hidden_widths: vec![7, 5],
            activation: Activation::Silu,
            context_at: ContextAt::EveryLayer,
            ..MlpConfig::default()
        };
        Self { config, sizes: &[2, 1, 4] }
    }

    /// No location, a rectifier.
    fn clouds() -> Self {
        let config = MlpConfig {
            context_dim: 5,
            hidden_widths: vec![18],
            activation: Activation::LEAKY_RELU,
            ..MlpConfig::default()
        };
        Self { config, sizes: &[9, 3] }
    }

    fn shape(&self) -> MlpShape {
        MlpShape::new(self.config.clone()).unwrap()
    }

    fn offsets(&self) -> SetOffsets {
        SetOffsets::from_sizes(self.sizes.iter().copied()).unwrap()
    }

    fn name(&self, operation: &str) -> String {
        format!("{operation} {:?} of sets {:?}", self.config.activation, self.sizes)
    }

    fn parameters(&self) -> Input {
        scaled("parameters", (1, self.shape().num_parameters()), 0.6)
    }

    fn context(&self) -> Option<Input> {
        let shape = (self.sizes.len(), self.config.context_dim);
        (shape.1 > 0).then(|| random("context", shape))
    }

    /// Parameters, elements and, where there is one, the context.
    fn inputs(&self) -> Vec<Input> {
        let elements = (self.offsets().num_elements(), self.shape().element_dim());
        [self.parameters(), random("elements", elements)]
            .into_iter()
            .chain(self.context())
            .collect()
    }

    fn points(&self, parameters: Var, elements: Var, context: Option<Var>) -> Points {
        let (shape, offsets) = (Arc::new(self.shape()), Arc::new(self.offsets()));
        Points { shape, parameters, elements, context, offsets }
    }

    fn network(&self, parameters: &[f64]) -> Network {
        Network { shape: self.shape(), parameters: parameters.to_vec() }
    }

    fn sets(&self, elements: &[f64], context: Option<&Vec<f64>>) -> Sets {
        let context = context.cloned().unwrap_or_default();
        Sets { elements: elements.to_vec(), offsets: self.offsets(), context }
    }

    /// An operation of a network on elements; `twin` gets the network and its sets.
    fn case(
        &self,
        operation: &str,
        build: impl Fn(&mut Tape, &Points) -> ebp::Result<Var> + 'static,
        twin: impl Fn(&Network, &Sets) -> Vec<f64> + 'static,
    ) -> Case {
        let (recorded, own) = (self.clone(), self.clone());
        Case::new(
            self.name(operation),
            self.inputs(),
            move |tape, vars| {
                let points = recorded.points(vars[0], vars[1], vars.get(2).copied());
                Ok(build(tape, &points)?.into())
            },
            move |inputs| {
                vec![twin(&own.network(&inputs[0]), &own.sets(&inputs[1], inputs.get(2)))]
            },
        )
    }

    fn networks(&self) -> Vec<Case> {
        let mut wide = self.clone();
        wide.config.output_dim = 6;
        let mut cases = vec![
            wide.case("point_values", Tape::point_values, Network::values),
            wide.case("point_sums", Tape::point_sums, Network::set_sums),
            self.case("point_score", Tape::point_score, Network::score),
        ];
        for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
            cases.push(wide.case(
                &format!("point_pool {pooling:?}"),
                move |tape, points| tape.point_pool(points, pooling),
                move |network, sets| network.pool(sets, pooling).0,
            ));
        }
        cases
    }

    /// Candidates, and their inputs after the network's: values, locations, weights.
    fn candidates(&self, is_shared: bool, has_weights: bool) -> Vec<Input> {
        let (anchors, rows) = (self.num_anchors(), if is_shared { 1 } else { self.num_anchors() });
        let mut inputs = vec![random("candidates", (rows * COUNT, self.config.value_dim))];
        if self.config.location_dim > 0 {
            inputs.push(random("locations", (anchors, self.config.location_dim)));
        }
        if has_weights {
            inputs.push(fixed(random("log weights", (rows, COUNT))));
        }
        inputs
    }

    fn num_anchors(&self) -> usize {
        self.anchor_offsets().num_elements()
    }

    /// Two anchors in the first set, one more in every further one.
    fn anchor_offsets(&self) -> SetOffsets {
        SetOffsets::from_sizes((0..self.sizes.len()).map(|set| set + 2)).unwrap()
    }

    fn candidate_vars(&self, vars: &[Var], is_shared: bool, has_weights: bool) -> CandidateVars {
        let mut rest = vars[1..].iter().copied();
        CandidateVars {
            values: vars[0],
            count: COUNT,
            is_shared,
            locations: (self.config.location_dim > 0).then(|| rest.next().unwrap()),
            log_weights: has_weights.then(|| rest.next().unwrap()),
            offsets: Arc::new(self.anchor_offsets()),
        }
    }

    fn anchors(
        &self,
        inputs: &[Vec<f64>],
        context: Option<&Vec<f64>>,
        (is_shared, has_weights): (bool, bool),
    ) -> Anchors {
        let mut rest = inputs[1..].iter().cloned();
        let mut locations = Vec::new();
        if self.config.location_dim > 0 {
            locations = rest.next().unwrap();
        }
        let repeats = if is_shared { self.num_anchors() } else { 1 };
        let log_weights = if has_weights {
            rest.next().unwrap().repeat(repeats)
        } else {
            vec![0.0; self.num_anchors() * COUNT]
        };
        Anchors {
            values: inputs[0].clone(),
            is_shared,
            num_candidates: COUNT,
            locations,
            offsets: self.anchor_offsets(),
            context: context.cloned().unwrap_or_default(),
            log_weights,
        }
    }

    fn log_partition(&self, is_shared: bool, has_weights: bool) -> Case {
        let (recorded, own) = (self.clone(), self.clone());
        let has_context = self.config.context_dim > 0;
        let first = 1 + usize::from(has_context);
        let inputs = std::iter::once(self.parameters()).chain(self.context());
        Case::new(
            self.name(&format!("log_partition shared: {is_shared}, weights: {has_weights},")),
            inputs.chain(self.candidates(is_shared, has_weights)).collect(),
            move |tape, vars| {
                let shape = Arc::new(recorded.shape());
                let context = has_context.then(|| vars[1]);
                let candidates = recorded.candidate_vars(&vars[first..], is_shared, has_weights);
                let found = tape.log_partition((&shape, vars[0], context), &candidates)?;
                Ok(Outputs { tracked: vec![found.log_partition], constants: vec![found.values] })
            },
            move |inputs| {
                let context = has_context.then(|| &inputs[1]);
                let anchors = own.anchors(&inputs[first..], context, (is_shared, has_weights));
                let (log_partition, values) = own.network(&inputs[0]).log_partition(&anchors);
                vec![log_partition, values]
            },
        )
    }

    /// mean over sets of (mean over anchors of log Z − mean over elements of f); constants are
    /// elements and candidates.
    fn likelihood(&self, is_shared: bool, has_weights: bool) -> Case {
        let (recorded, own) = (self.clone(), self.clone());
        let has_context = self.config.context_dim > 0;
        let first = 2 + usize::from(has_context);
        let mut inputs = self.inputs();
        inputs[1].is_tracked = false;
        inputs.extend(self.candidates(is_shared, has_weights).into_iter().map(fixed));
        Case::new(
            self.name(&format!("likelihood shared: {is_shared}, weights: {has_weights},")),
            inputs,
            move |tape, vars| {
                let points = recorded.points(vars[0], vars[1], has_context.then(|| vars[2]));
                let candidates = recorded.candidate_vars(&vars[first..], is_shared, has_weights);
                let found = tape.likelihood(&points, &candidates)?;
                let constants = vec![found.log_partition, found.values];
                Ok(Outputs { tracked: vec![found.nats], constants })
            },
            move |inputs| {
                let network = own.network(&inputs[0]);
                let context = has_context.then(|| &inputs[2]);
                let anchors = own.anchors(&inputs[first..], context, (is_shared, has_weights));
                let (log_partition, values) = network.log_partition(&anchors);
                let sets = own.sets(&inputs[1], context);
                let f = network.values(&sets);
                let mean = |values: &[f64], offsets: &SetOffsets, set: usize| {
                    let range = offsets.range(set);
                    values[range.clone()].iter().sum::<f64>() / range.len() as f64
                };
                let term = |set: usize| {
                    mean(&log_partition, &anchors.offsets, set) - mean(&f, &sets.offsets, set)
                };
                let num_sets = own.sizes.len();
                let nats = (0..num_sets).map(term).sum::<f64>() / num_sets as f64;
                vec![vec![nats], log_partition, values]
            },
        )
    }

    fn dynamics(&self) -> Vec<Case> {
        let total = self.offsets().num_elements();
        let free = MotionRules::default();
        let ruled = MotionRules {
            clip: Clip::Norm(0.8),
            base_std_dev: Some(1.5),
            bounds: Some(Bounds { low: -2.5, high: 2.5 }),
            is_fixed: Some(Arc::new((0..total).map(|element| element % 4 == 3).collect())),
        };
        let clipped = MotionRules { clip: Clip::Elementwise(0.4), ..MotionRules::default() };
        let all = [("free", free), ("ruled", ruled), ("clipped", clipped)];
        all.into_iter()
            .flat_map(|(name, rules)| {
                [self.langevin(name, rules.clone()), self.leapfrog(name, rules)]
            })
            .collect()
    }

    /// Parameters, values, locations (where there are any), context (likewise), step sizes.
    /// Parameters and locations are constants.
    fn moving(&self) -> Vec<Input> {
        let total = self.offsets().num_elements();
        let mut inputs =
            vec![fixed(self.parameters()), random("values", (total, self.config.value_dim))];
        if self.config.location_dim > 0 {
            inputs.push(fixed(random("locations", (total, self.config.location_dim))));
        }
        inputs.extend(self.context());
        let mut step_sizes = random("step sizes", (1, STEPS));
        step_sizes.values = vec![0.3, 0.2, 0.1];
        inputs.push(step_sizes);
        inputs
    }

    fn moving_points(&self, tape: &mut Tape, vars: &[Var]) -> ebp::Result<(Points, Var)> {
        let mut rest = vars[1..].iter().copied();
        let mut elements = rest.next().unwrap();
        if self.config.location_dim > 0 {
            elements = tape.concat(&[elements, rest.next().unwrap()])?;
        }
        let context = (self.config.context_dim > 0).then(|| rest.next().unwrap());
        Ok((self.points(vars[0], elements, context), rest.next().unwrap()))
    }

    /// Every element as a set of its own, so that sums over sets are those of elements; and the
    /// step sizes.
    fn moving_sets(&self, inputs: &[Vec<f64>]) -> (Sets, Vec<f64>) {
        let offsets = self.offsets();
        let total = offsets.num_elements();
        let mut rest = inputs[1..].iter();
        let values = rest.next().unwrap();
        let (dx, dt) = (self.config.value_dim, self.config.location_dim);
        let locations = if dt > 0 { rest.next().unwrap().clone() } else { Vec::new() };
        let row = |i: usize| {
            let location = locations[i * dt..(i + 1) * dt].iter();
            values[i * dx..(i + 1) * dx].iter().chain(location).copied().collect::<Vec<_>>()
        };
        let elements = (0..total).flat_map(row).collect();
        let k = self.config.context_dim;
        let context = if k > 0 { rest.next().unwrap().clone() } else { Vec::new() };
        let context =
            (0..total).flat_map(|i| context[offsets.set_of(i) * k..][..k].to_vec()).collect();
        let sets = Sets { elements, offsets: SetOffsets::uniform(total, 1).unwrap(), context };
        (sets, rest.next().unwrap().clone())
    }

    fn value_columns(&self, elements: &[f64]) -> Vec<f64> {
        let rows = elements.chunks(self.shape().element_dim());
        rows.flat_map(|row| row[..self.config.value_dim].to_vec()).collect()
    }

    fn langevin(&self, name: &str, rules: MotionRules) -> Case {
        const NOISE_SCALES: [f32; STEPS] = [0.4, 0.0, 0.2];
        let noise = Stream::new(2, "langevin");
        let (recorded, own, recorded_rules) = (self.clone(), self.clone(), rules.clone());
        Case::new(
            self.name(&format!("langevin {name}")),
            self.moving(),
            move |tape, vars| {
                let (points, step_sizes) = recorded.moving_points(tape, vars)?;
                let rules = &recorded_rules;
                let found = tape.langevin(&points, step_sizes, &NOISE_SCALES, noise, rules)?;
                let tracked = vec![found.values, found.kinetic];
                Ok(Outputs { tracked, constants: vec![found.noise] })
            },
            move |inputs| {
                let (sets, step_sizes) = own.moving_sets(inputs);
                let noise_scales = super::widen(&NOISE_SCALES);
                let motion = motion(&rules);
                let plan = LangevinPlan { step_sizes, noise_scales, noise, motion };
                let run = own.network(&inputs[0]).langevin(&sets, &plan);
                let kinetic = run.kinetic.chunks(STEPS).map(|steps| steps.iter().sum());
                let squares = |i: usize| own.noise_squares(&rules, noise, &NOISE_SCALES, i);
                let noises = (0..own.offsets().num_elements()).map(squares).collect();
                vec![own.value_columns(&run.elements), kinetic.collect(), noises]
            },
        )
    }

    /// Σ_t s_t² ‖ξ_t‖² of an element, 0 where it is fixed.
    fn noise_squares(&self, rules: &MotionRules, noise: Stream, scales: &[f32], i: usize) -> f64 {
        if rules.is_fixed.as_ref().is_some_and(|mask| mask[i]) {
            return 0.0;
        }
        let dx = self.config.value_dim;
        let term = |(step, scale): (u32, &f32)| {
            let xi = |k: usize| f64::from(*scale * noise.normal(step, (i * dx + k) as u64));
            (0..dx).map(|k| xi(k).powi(2)).sum::<f64>()
        };
        (0..).zip(scales).map(term).sum()
    }

    fn leapfrog(&self, name: &str, rules: MotionRules) -> Case {
        let (recorded, own, recorded_rules) = (self.clone(), self.clone(), rules.clone());
        let mut inputs = self.moving();
        inputs.push(random("momentum", inputs[1].shape));
        Case::new(
            self.name(&format!("leapfrog {name}")),
            inputs,
            move |tape, vars| {
                let (momentum, others) = vars.split_last().unwrap();
                let (points, step_sizes) = recorded.moving_points(tape, others)?;
                let found = tape.leapfrog(&points, *momentum, step_sizes, &recorded_rules)?;
                Ok(Outputs { tracked: vec![found.values, found.momentum], constants: Vec::new() })
            },
            move |inputs| {
                let (momentum, others) = inputs.split_last().unwrap();
                let (sets, step_sizes) = own.moving_sets(others);
                let plan = LeapfrogPlan { step_sizes, motion: motion(&rules) };
                let run = own.network(&inputs[0]).leapfrog(&sets, momentum, &plan);
                vec![own.value_columns(&run.elements), run.momentum]
            },
        )
    }
}

/// K of every case.
const COUNT: usize = 5;
/// T of every case.
const STEPS: usize = 3;

fn motion(rules: &MotionRules) -> Motion<'_> {
    Motion {
        clip: rules.clip,
        base_std_dev: rules.base_std_dev,
        bounds: rules.bounds,
        is_fixed: rules.is_fixed.as_ref().map(|mask| mask.as_slice()),
    }
}

/// (Σw)²/Σw², the share of the near ones and the largest share, w ∝ exp(f + ω), over anchors.
fn weight_figures(shape: Shape, weights: Option<Shape>, has_near: bool) -> Case {
    let (anchors, count) = shape;
    let mut inputs = vec![random("values", shape)];
    inputs.extend(weights.map(|shape| random("log weights", shape)));
    if has_near {
        let mut near = random("near", shape);
        near.values.iter_mut().for_each(|x| *x = f32::from(u8::from(*x > 0.0)));
        inputs.push(near);
    }
    Case::new(
        format!("weight_figures {shape:?} weights {weights:?} near {has_near}"),
        inputs,
        move |tape, vars| {
            let near = has_near.then(|| vars[vars.len() - 1]);
            let found = tape.weight_figures(vars[0], weights.map(|_| vars[1]), near)?;
            Ok(Outputs { tracked: Vec::new(), constants: vec![found] })
        },
        move |inputs| {
            let mut figures = vec![0.0; 3];
            for anchor in 0..anchors {
                let at = |k: usize| anchor * count + k;
                let shift = |k: usize| match weights {
                    Some((1, _)) => inputs[1][k],
                    Some(_) => inputs[1][at(k)],
                    None => 0.0,
                };
                let w: Vec<f64> = (0..count).map(|k| (inputs[0][at(k)] + shift(k)).exp()).collect();
                let near = |k: usize| if has_near { inputs[inputs.len() - 1][at(k)] } else { 0.0 };
                let (sum, squares): (f64, f64) = (w.iter().sum(), w.iter().map(|w| w * w).sum());
                figures[0] += sum * sum / squares / anchors as f64;
                let close: f64 = (0..count).map(|k| near(k) * w[k]).sum();
                figures[1] += close / sum / anchors as f64;
                figures[2] += w.iter().copied().fold(0.0, f64::max) / sum / anchors as f64;
            }
            vec![figures]
        },
    )
}

/// ω = −‖y‖²/(2 s₀²) − L − log K inside the domain, −10⁶ outside.
fn weigh_draws(dims: usize, base_std_dev: Option<f32>) -> Case {
    let rows = 37;
    let domain = DrawDomain { low: -1.5, high: 1.2, base_std_dev };
    Case::new(
        format!("weigh_draws d = {dims}, base {base_std_dev:?}"),
        vec![random("draws", (rows, dims)), random("log density", (rows, 1))],
        move |tape, vars| {
            let found = tape.weigh_draws(vars[0], vars[1], domain, 0.7)?;
            Ok(Outputs { tracked: Vec::new(), constants: vec![found] })
        },
        move |inputs| {
            let weight = |(y, density): (&[f64], &f64)| {
                let square: f64 = y.iter().map(|y| y * y).sum();
                let precision = base_std_dev.map_or(0.0, |s| 1.0 / f64::from(s).powi(2));
                let is_inside = y.iter().all(|y| (-1.5..=1.2).contains(y));
                let inside = -0.5 * precision * square - density - f64::from(0.7_f32);
                if is_inside { inside } else { -1e6 }
            };
            vec![inputs[0].chunks(dims).zip(&inputs[1]).map(weight).collect()]
        },
    )
}
