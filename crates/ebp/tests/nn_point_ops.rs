//! The primitive in candle's graph: every gradient against differences of the forward pass.

#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::sync::Arc;

use candle_core::{DType, Device, Tensor, Var};
use ebp::SetOffsets;
use ebp::nn::{
    Initialiser, LangevinSettings, LikelihoodSets, Mode, Parameters, PointModule, SpectralNorm,
    TensorBatch, TensorCandidates,
};
use ebp::point::{
    Activation, Bounds, Clip, ContextAt, CpuBackend, MlpConfig, MlpShape, Motion, Pooling,
};
use ebp::rng::Stream;

fn random(dims: &[usize], name: &str) -> Tensor {
    let law = Initialiser::Normal { mean: 0.0, std_dev: 1.0 };
    Tensor::from_vec(law.draw(dims, Stream::new(5, name)).unwrap(), dims, &Device::Cpu).unwrap()
}

fn variable(dims: &[usize], name: &str) -> Var {
    Var::from_tensor(&random(dims, name)).unwrap()
}

fn wide(tensor: &Tensor) -> Vec<f64> {
    let values: Vec<f32> = tensor.flatten_all().unwrap().to_vec1().unwrap();
    values.into_iter().map(f64::from).collect()
}

/// A network and a ragged batch of three sets.
struct Case {
    module: PointModule,
    elements: Var,
    context: Option<Var>,
    parameters: Var,
    offsets: SetOffsets,
}

impl Case {
    fn new(config: MlpConfig) -> Self {
        let offsets = SetOffsets::from_sizes([3, 1, 4]).unwrap();
        let (num_sets, num_elements) = (offsets.num_sets(), offsets.num_elements());
        let context_dim = config.context_dim;
        let shape = MlpShape::new(config).unwrap();
        // Larger than at the start of training, biases too, so that second derivatives count.
        let parameters = Parameters::new(3).point_mlp("energy", &shape).unwrap();
        let offset = (random(parameters.dims(), "parameters") * 0.3).unwrap();
        parameters.set(&(parameters.affine(1.8, 0.0).unwrap() + offset).unwrap()).unwrap();
        Self {
            elements: variable(&[num_elements, shape.element_dim()], "elements"),
            context: (context_dim > 0).then(|| variable(&[num_sets, context_dim], "context")),
            parameters,
            module: PointModule::new(shape, Arc::new(CpuBackend::new())),
            offsets,
        }
    }

    /// x in two dimensions, t in one, a context everywhere, smooth σ: every term is alive.
    fn energy() -> Self {
        Self::new(smooth())
    }

    fn batch(&self) -> TensorBatch<'_> {
        TensorBatch {
            elements: &self.elements,
            context: self.context.as_deref(),
            parameters: &self.parameters,
            offsets: &self.offsets,
        }
    }

    /// Elements, context and parameters by name.
    fn variables(&self) -> Vec<(&'static str, &Var)> {
        let context = self.context.iter().map(|context| ("context", context));
        [("elements", &self.elements), ("parameters", &self.parameters)]
            .into_iter()
            .chain(context)
            .collect()
    }
}

fn smooth() -> MlpConfig {
    MlpConfig {
        value_dim: 2,
        location_dim: 1,
        context_dim: 3,
        hidden_widths: vec![7, 5],
        output_dim: 1,
        activation: Activation::Silu,
        context_at: ContextAt::EveryLayer,
        activate_output: false,
    }
}

/// Fixed random directions r, so that L = Σ ⟨r, output⟩ depends on every output differently.
fn directions(outputs: &[Tensor]) -> Vec<Tensor> {
    let names = ["first", "second"];
    outputs.iter().zip(names).map(|(output, name)| random(output.dims(), name)).collect()
}

/// L in f64, from outputs in f32.
fn loss_value(outputs: &[Tensor]) -> f64 {
    let pairs = outputs.iter().zip(directions(outputs));
    pairs
        .map(|(output, direction)| {
            wide(output).iter().zip(wide(&direction)).map(|(a, b)| a * b).sum::<f64>()
        })
        .sum()
}

fn loss(outputs: &[Tensor]) -> Tensor {
    let mut sum = Tensor::zeros((), DType::F32, &Device::Cpu).unwrap();
    for (output, direction) in outputs.iter().zip(directions(outputs)) {
        sum = (sum + (output * direction).unwrap().sum_all().unwrap()).unwrap();
    }
    sum
}

/// Compares candle's gradient with central differences, entry by entry.
///
/// The difference of fourth order is exact up to h⁴, so h can be large enough (0.01) for outputs
/// in f32, which carry errors near 1e-6. `is_compared` leaves out entries that count as constants.
fn check_gradients(
    variables: &[(&str, &Var)],
    outputs: impl Fn() -> Vec<Tensor>,
    is_compared: impl Fn(&str, usize) -> bool,
) {
    let gradients = loss(&outputs()).backward().unwrap();
    for (name, variable) in variables {
        let gradient = wide(gradients.get(variable).unwrap());
        let start = variable.as_detached_tensor().copy().unwrap();
        let h = 1e-2;
        for (index, found) in gradient.iter().enumerate() {
            if !is_compared(name, index) {
                assert!(*found == 0.0, "{name}[{index}] must be constant, found {found}");
                continue;
            }
            let value = |shift: f32| {
                let mut moved: Vec<f32> = start.flatten_all().unwrap().to_vec1().unwrap();
                moved[index] += shift;
                let moved = Tensor::from_vec(moved, start.dims(), &Device::Cpu).unwrap();
                variable.set(&moved).unwrap();
                loss_value(&outputs())
            };
            let (near, far) = (value(h) - value(-h), value(2.0 * h) - value(-2.0 * h));
            let expected = (8.0 * near - far) / (12.0 * f64::from(h));
            let error = (found - expected).abs();
            assert!(error < 5e-4 * (1.0 + expected.abs()), "{name}[{index}]: {found} {expected}");
        }
        variable.set(&start).unwrap();
    }
}

fn everything(_: &str, _: usize) -> bool {
    true
}

#[test]
fn values_and_set_sums_are_differentiable() {
    for context_dim in [0, 3] {
        let config = MlpConfig { output_dim: 2, context_dim, ..smooth() };
        let case = Case::new(config);
        let outputs = || vec![case.module.values(&case.batch()).unwrap()];
        assert_eq!(outputs()[0].dims(), [8, 2]);
        check_gradients(&case.variables(), outputs, everything);
        let outputs = || vec![case.module.set_sums(&case.batch()).unwrap()];
        assert_eq!(outputs()[0].dims(), [3, 2]);
        check_gradients(&case.variables(), outputs, everything);
    }
}

#[test]
fn the_score_is_differentiable() {
    let case = Case::energy();
    let outputs = || vec![case.module.score(&case.batch()).unwrap()];
    assert_eq!(outputs()[0].dims(), [8, 2]);
    check_gradients(&case.variables(), outputs, everything);
}

#[test]
fn the_score_is_the_gradient_of_the_values() {
    let case = Case::energy();
    let values = case.module.values(&case.batch()).unwrap();
    let gradients = values.sum_all().unwrap().backward().unwrap();
    let expected = gradients.get(&case.elements).unwrap().narrow(1, 0, 2).unwrap();
    let found = case.module.score(&case.batch()).unwrap();
    for (found, expected) in wide(&found).iter().zip(wide(&expected)) {
        assert!((found - expected).abs() < 1e-5);
    }
}

#[test]
fn pools_are_differentiable() {
    for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
        let config = MlpConfig { output_dim: 4, activate_output: true, ..smooth() };
        let case = Case::new(config);
        let outputs = || vec![case.module.pool(&case.batch(), pooling).unwrap()];
        assert_eq!(outputs()[0].dims(), [3, 4]);
        check_gradients(&case.variables(), outputs, everything);
    }
}

#[test]
fn log_partitions_are_differentiable() {
    let case = Case::energy();
    let locations = random(&[8, 1], "locations");
    for (candidates, weights) in [
        (variable(&[8, 5, 2], "candidates"), Some(random(&[8, 5], "weights"))),
        (variable(&[8, 5, 2], "candidates"), None),
        (variable(&[5, 2], "candidates"), Some(random(&[5], "weights"))),
    ] {
        let run = || {
            let tensors = TensorCandidates {
                values: &candidates,
                context: case.context.as_deref(),
                parameters: &case.parameters,
                locations: Some(&locations),
                log_weights: weights.as_ref(),
                offsets: &case.offsets,
            };
            case.module.log_partition(&tensors).unwrap()
        };
        let first = run();
        assert_eq!(first.log_partition.dims(), [8]);
        assert_eq!(first.values.dims(), [8, 5]);
        assert!(!first.values.track_op());
        // log Z from the values alone.
        let mut log_terms = first.values.clone();
        if let Some(weights) = &weights {
            log_terms = log_terms.broadcast_add(weights).unwrap();
        }
        let expected = wide(&log_terms.exp().unwrap().sum(1).unwrap().log().unwrap());
        for (found, expected) in wide(&first.log_partition).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5);
        }
        let variables = [
            ("candidates", &candidates),
            ("context", case.context.as_ref().unwrap()),
            ("parameters", &case.parameters),
        ];
        check_gradients(&variables, || vec![run().log_partition], everything);
    }
}

/// mean_s (log Z − mean f) by the operations it is made of, and by differences.
#[test]
fn the_likelihood_is_its_parts_and_differentiable() {
    let case = Case::new(MlpConfig { location_dim: 0, ..smooth() });
    let context = case.context.as_ref().unwrap();
    let (candidates, weights) = (random(&[3, 5, 2], "candidates"), random(&[3, 5], "weights"));
    let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let (elements, places, omega) = (flat(&case.elements), flat(&candidates), flat(&weights));
    let run = || {
        let sets = LikelihoodSets {
            elements: &elements,
            offsets: &case.offsets,
            candidates: &places,
            log_weights: &omega,
            context,
            parameters: &case.parameters,
        };
        case.module.likelihood(&sets).unwrap()
    };
    let partition = case
        .module
        .log_partition(&TensorCandidates {
            values: &candidates,
            context: Some(context),
            parameters: &case.parameters,
            locations: None,
            log_weights: Some(&weights),
            offsets: &SetOffsets::uniform(3, 1).unwrap(),
        })
        .unwrap();
    let sums = wide(&case.module.set_sums(&case.batch()).unwrap());
    let log_z = wide(&partition.log_partition);
    let expected: f64 =
        (0..3).map(|set| (log_z[set] - sums[set] / case.offsets.size(set) as f64) / 3.0).sum();
    let found = run();
    assert!((wide(&found.nats)[0] - expected).abs() < 1e-5);
    assert_eq!(found.candidate_values, flat(&partition.values));
    let variables = [("context", context), ("parameters", &case.parameters)];
    check_gradients(&variables, || vec![run().nats], everything);
}

#[test]
fn constants_of_a_log_partition_must_be_detached() {
    let case = Case::energy();
    let weights = variable(&[8, 5], "weights");
    let error = case.module.log_partition(&TensorCandidates {
        values: &random(&[8, 5, 2], "candidates"),
        context: case.context.as_deref(),
        parameters: &case.parameters,
        locations: Some(&random(&[8, 1], "locations")),
        log_weights: Some(&weights),
        offsets: &case.offsets,
    });
    let message = error.unwrap_err().to_string();
    assert!(message.starts_with("`candidates.log_weights` must be detached"), "{message}");
}

/// Columns 0 and 1 of an element are its value, column 2 its location.
fn all_but_locations(name: &str, index: usize) -> bool {
    name != "elements" || index % 3 != 2
}

#[test]
fn langevin_steps_are_differentiable() {
    let case = Case::energy();
    let step_sizes = Var::new(&[0.3_f32, 0.2, 0.1], &Device::Cpu).unwrap();
    let is_fixed = [false, true, false, false, false, false, true, false];
    let motions = [
        Motion::default(),
        Motion { base_std_dev: Some(1.5), is_fixed: Some(&is_fixed), ..Motion::default() },
        Motion { clip: Clip::Norm(0.2), ..Motion::default() },
        Motion { clip: Clip::Elementwise(0.5), ..Motion::default() },
        Motion { bounds: Some(Bounds { low: -1.5, high: 1.5 }), ..Motion::default() },
    ];
    let mut ends: Vec<Vec<f64>> = Vec::new();
    for motion in motions {
        let settings = LangevinSettings {
            noise_scales: &[0.3, 0.2, 0.0],
            noise: Stream::new(4, "noise"),
            motion,
        };
        let outputs = || {
            let run = case.module.langevin(&case.batch(), &step_sizes, &settings).unwrap();
            vec![run.elements, run.kinetic]
        };
        assert_eq!(outputs()[0].dims(), [8, 3]);
        assert_eq!(outputs()[1].dims(), [3]);
        // A setting without effect here would not be tested.
        assert!(!ends.contains(&wide(&outputs()[0])), "{motion:?}");
        ends.push(wide(&outputs()[0]));
        let variables = [
            ("elements", &case.elements),
            ("context", case.context.as_ref().unwrap()),
            ("step sizes", &step_sizes),
        ];
        check_gradients(&variables, outputs, all_but_locations);
        // Each result alone, too.
        check_gradients(&variables, || outputs()[..1].to_vec(), all_but_locations);
        check_gradients(&variables, || outputs()[1..].to_vec(), all_but_locations);
        let gradients = loss(&outputs()).backward().unwrap();
        assert!(gradients.get(&case.parameters).is_none());
    }
}

#[test]
fn leapfrog_steps_are_differentiable() {
    let case = Case::energy();
    let momentum = variable(&[8, 2], "momentum");
    let step_sizes = Var::new(&[0.3_f32, 0.2], &Device::Cpu).unwrap();
    let motions = [
        Motion::default(),
        Motion { base_std_dev: Some(1.5), clip: Clip::Norm(0.5), ..Motion::default() },
        Motion { bounds: Some(Bounds { low: -1.5, high: 1.5 }), ..Motion::default() },
    ];
    let mut ends: Vec<Vec<f64>> = Vec::new();
    for motion in motions {
        let outputs = || {
            let run = case.module.leapfrog(&case.batch(), &momentum, &step_sizes, &motion).unwrap();
            vec![run.elements, run.momentum]
        };
        assert_eq!(outputs()[0].dims(), [8, 3]);
        assert_eq!(outputs()[1].dims(), [8, 2]);
        assert!(!ends.contains(&wide(&outputs()[0])), "{motion:?}");
        ends.push(wide(&outputs()[0]));
        let variables = [
            ("elements", &case.elements),
            ("momentum", &momentum),
            ("context", case.context.as_ref().unwrap()),
            ("step sizes", &step_sizes),
        ];
        check_gradients(&variables, outputs, all_but_locations);
    }
}

/// The gradient travels on through what made the arguments, and back through views of them.
#[test]
fn arguments_may_be_results_of_other_operations() {
    let case = Case::energy();
    let norm = SpectralNorm::for_mlp(&Parameters::new(2), case.module.shape()).unwrap();
    norm.iterate(&case.parameters, 500).unwrap();
    let outputs = || {
        let transposed = case.elements.t().unwrap().contiguous().unwrap();
        let elements = (transposed.t().unwrap() * 0.5).unwrap();
        let context = case.context.as_ref().unwrap().tanh().unwrap();
        // At the fixed point of the power iteration the gradient is exact.
        let parameters = norm.normalise(&case.parameters, Mode::Evaluate).unwrap();
        let batch = TensorBatch {
            elements: &elements,
            context: Some(&context),
            parameters: &parameters,
            offsets: &case.offsets,
        };
        vec![case.module.values(&batch).unwrap()]
    };
    check_gradients(&case.variables(), outputs, everything);
}

#[test]
fn only_arguments_that_track_gradients_get_them() {
    let case = Case::energy();
    let (elements, parameters) =
        (case.elements.as_detached_tensor(), case.parameters.as_detached_tensor());
    let batch = TensorBatch { elements: &elements, ..case.batch() };
    let sums = case.module.set_sums(&batch).unwrap();
    let gradients = sums.sum_all().unwrap().backward().unwrap();
    assert!(gradients.get(&elements).is_none());
    assert!(gradients.get(&case.parameters).is_some());

    let context = case.context.as_ref().unwrap().as_detached_tensor();
    let batch = TensorBatch {
        elements: &elements,
        context: Some(&context),
        parameters: &parameters,
        offsets: &case.offsets,
    };
    assert!(!case.module.values(&batch).unwrap().track_op());
}

/// The backward pass belongs to the forward pass, not to what an optimiser made of the network.
#[test]
fn parameters_are_those_of_the_forward_pass() {
    let case = Case::energy();
    let gradient = |is_moved_between: bool| {
        let values = case.module.values(&case.batch()).unwrap().sum_all().unwrap();
        let before = case.parameters.as_detached_tensor().copy().unwrap();
        if is_moved_between {
            case.parameters.set(&before.zeros_like().unwrap()).unwrap();
        }
        let gradient = wide(values.backward().unwrap().get(&case.parameters).unwrap());
        case.parameters.set(&before).unwrap();
        gradient
    };
    assert_eq!(gradient(false), gradient(true));
}

#[test]
fn arguments_that_do_not_fit_are_refused_by_name() {
    let case = Case::energy();
    let refusal = |batch: TensorBatch<'_>| case.module.values(&batch).unwrap_err().to_string();
    let narrow = random(&[8, 2], "narrow");
    let message = refusal(TensorBatch { elements: &narrow, ..case.batch() });
    assert_eq!(message, "`elements` must be of shape [8, 3], found [8, 2]");
    let message = refusal(TensorBatch { context: None, ..case.batch() });
    assert_eq!(message, "`context` must be of shape [3, 3], found none");
    let double = case.parameters.to_dtype(DType::F64).unwrap();
    let message = refusal(TensorBatch { parameters: &double, ..case.batch() });
    assert!(message.starts_with("`parameters` must be a contiguous f32 tensor"), "{message}");
    let broken = case.elements.as_detached_tensor().affine(f64::NAN, 0.0).unwrap();
    let message = refusal(TensorBatch { elements: &broken, ..case.batch() });
    assert!(message.starts_with("`elements` must be finite"), "{message}");
}
