//! Every operation of a backend on one case, its numbers by name: for tests that compare two ways
//! to get the same answer.

use ebp::point::{
    Bounds, CandidateValues, Candidates, Clip, Cotangent, DynamicsCotangent, DynamicsGradients,
    Gradients, Langevin, Leapfrog, LogWeights, Motion, PointBackend, Pooling, ScoreCotangent,
    Wanted,
};
use ebp::rng::Stream;

use super::Case;

/// Names of results and their numbers.
pub(crate) type Answers = Vec<(String, Vec<f32>)>;

fn add_gradients(answers: &mut Answers, name: &str, gradients: Gradients) {
    let Gradients { parameters, context, elements, locations } = gradients;
    for (part, numbers) in
        [("parameters", parameters), ("context", context), ("elements", elements)]
    {
        answers.push((format!("{name}: {part}"), numbers.expect("all were wanted")));
    }
    // Only anchors have locations of their own.
    answers.extend(locations.map(|numbers| (format!("{name}: locations"), numbers)));
}

fn add_dynamics(answers: &mut Answers, name: &str, gradients: DynamicsGradients) {
    answers.push((format!("{name}: values"), gradients.values));
    answers.push((format!("{name}: momentum"), gradients.momentum));
    answers.push((format!("{name}: step sizes"), gradients.step_sizes));
    answers.push((format!("{name}: context"), gradients.context));
}

/// Everything but dynamics and log partitions, for any number of outputs.
pub(crate) fn of_any_network(backend: &dyn PointBackend, case: &Case) -> Answers {
    let (mlp, batch) = (&case.mlp, &case.batch());
    let outputs = case.config().output_dim;
    let mut answers = vec![
        ("values".into(), backend.values(mlp, batch).unwrap()),
        ("set sums".into(), backend.set_sums(mlp, batch).unwrap()),
    ];
    let per_element = case.normals("cotangent", case.offsets.num_elements() * outputs);
    let per_set = case.normals("cotangent of sets", case.offsets.num_sets() * outputs);
    let cotangents = [Cotangent::PerElement(&per_element), Cotangent::PerSet(&per_set)];
    for (name, cotangent) in ["per element", "per set"].iter().zip(cotangents) {
        let found = backend.backward(mlp, batch, cotangent, Wanted::ALL).unwrap();
        answers.push((format!("backward {name}: values"), found.values));
        add_gradients(&mut answers, &format!("backward {name}"), found.gradients);
    }
    for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
        let pooled = backend.pool(mlp, batch, pooling).unwrap();
        let gradients = backend.pool_backward(mlp, batch, &pooled, &per_set, Wanted::ALL).unwrap();
        add_gradients(&mut answers, &format!("pool backward {pooling:?}"), gradients);
        answers.push((format!("pool {pooling:?}"), pooled.values));
        let critical = pooled.critical.iter().map(|&row| row as f32).collect();
        answers.push((format!("pool {pooling:?}: critical rows"), critical));
    }
    answers
}

/// Scores, log partitions and dynamics, for one output.
pub(crate) fn of_an_energy(backend: &dyn PointBackend, case: &Case) -> Answers {
    let (mlp, batch) = (&case.mlp, &case.batch());
    let score = backend.score(mlp, batch).unwrap();
    let mut answers = vec![("score: values".into(), score.values), ("score".into(), score.score)];
    let (lambda, mu) = (case.like_values("lambda"), case.like_values("mu"));
    let per_element = case.per_element("per element");
    let cotangent = ScoreCotangent { score: &lambda, values: Some(&per_element) };
    let gradients = backend.score_backward(mlp, batch, cotangent, Wanted::ALL).unwrap();
    add_gradients(&mut answers, "score backward", gradients);
    add_log_partition(&mut answers, backend, case);

    let motion = Motion {
        clip: Clip::Norm(2.0),
        base_std_dev: Some(1.2),
        bounds: Some(Bounds { low: -3.0, high: 3.0 }),
        is_fixed: None,
    };
    let (step_sizes, noise_scales) = (&[0.2, 0.1], &[0.3, 0.1]);
    let langevin = Langevin { step_sizes, noise_scales, noise: Stream::new(5, "noise"), motion };
    let run = backend.langevin(mlp, batch, &langevin).unwrap();
    answers.push(("langevin: elements".into(), run.elements));
    answers.push(("langevin: values".into(), run.values));
    answers.push(("langevin: score".into(), run.score));
    answers.push(("langevin: kinetic".into(), run.kinetic));
    answers.push(("langevin: final alignment".into(), run.final_alignment));
    answers.push(("langevin: kinetic alignment".into(), run.kinetic_alignment));
    let cotangent =
        DynamicsCotangent { values: &lambda, momentum: None, kinetic: Some(&per_element) };
    let gradients = backend.langevin_backward(mlp, batch, &langevin, cotangent).unwrap();
    add_dynamics(&mut answers, "langevin backward", gradients);

    let momentum = case.like_values("momentum");
    let leapfrog = Leapfrog { step_sizes, motion };
    let run = backend.leapfrog(mlp, batch, &momentum, &leapfrog).unwrap();
    answers.push(("leapfrog: elements".into(), run.elements));
    answers.push(("leapfrog: momentum".into(), run.momentum));
    answers.push(("leapfrog: values".into(), run.values));
    answers.push(("leapfrog: score".into(), run.score));
    answers.push(("leapfrog: kinetic".into(), run.kinetic));
    let cotangent = DynamicsCotangent { values: &lambda, momentum: Some(&mu), kinetic: None };
    let gradients = backend.leapfrog_backward(mlp, batch, &momentum, &leapfrog, cotangent).unwrap();
    add_dynamics(&mut answers, "leapfrog backward", gradients);
    answers
}

/// With candidates per anchor and with shared ones; the batch's elements are the anchors.
fn add_log_partition(answers: &mut Answers, backend: &dyn PointBackend, case: &Case) {
    let (anchors, k) = (case.offsets.num_elements(), 7);
    let config = case.config();
    let locations = case.normals("locations", anchors * config.location_dim);
    let values = case.normals("candidates", anchors * k * config.value_dim);
    let weights = case.normals("log weights", anchors * k);
    let cotangent = case.normals("cotangent", anchors);
    let per_anchor = (CandidateValues::PerAnchor(&values), LogWeights::PerAnchor(&weights));
    let shared_values = CandidateValues::Shared(&values[..k * config.value_dim]);
    let shared = (shared_values, LogWeights::Shared(&weights[..k]));
    for (name, (values, log_weights)) in [("per anchor", per_anchor), ("shared", shared)] {
        let candidates = Candidates {
            values,
            num_candidates: k,
            locations: &locations,
            offsets: &case.offsets,
            context: &case.context,
            log_weights,
        };
        let found = backend.log_partition(&case.mlp, &candidates).unwrap();
        let given = &found.log_partition;
        let gradients = backend
            .log_partition_backward(&case.mlp, &candidates, given, &cotangent, Wanted::ALL)
            .unwrap();
        add_gradients(answers, &format!("log partition backward {name}"), gradients);
        answers.push((format!("log partition {name}"), found.log_partition));
        answers.push((format!("log partition {name}: values"), found.values));
    }
}
