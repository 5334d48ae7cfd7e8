//! Proves the twin's dynamics: the gradients it gives through Langevin and leapfrog steps are the
//! finite differences of where the steps end, with every clip, base measure, walls and fixed
//! elements, for every activation.

mod case;
mod twin;

use case::differences::{CLEARANCE, check, specs};
use case::{Case, Spec};
use ebp::point::{Bounds, Clip, Motion};
use ebp::rng::Stream;
use twin::{LangevinPlan, LeapfrogPlan, Network, Sets, dot, widen};

/// Every clip, with and without base measure, walls and fixed elements. The walls at ±0.7 are
/// met often by elements of standard deviation one, and cross both reflection and clamping.
fn motions() -> Vec<Motion<'static>> {
    const IS_FIXED: &[bool] = &[false, true, false, false];
    let bounds = Some(Bounds { low: -0.7, high: 0.7 });
    vec![
        Motion::default(),
        Motion { base_std_dev: Some(0.8), ..Motion::default() },
        Motion { clip: Clip::Elementwise(0.4), base_std_dev: Some(1.5), ..Motion::default() },
        Motion { clip: Clip::Norm(0.5), is_fixed: Some(IS_FIXED), ..Motion::default() },
        Motion { clip: Clip::Norm(3.0), base_std_dev: Some(2.0), bounds, ..Motion::default() },
        Motion {
            clip: Clip::Elementwise(0.6),
            bounds,
            is_fixed: Some(IS_FIXED),
            ..Motion::default()
        },
    ]
}

fn dynamics_specs() -> Vec<Spec> {
    specs(1).into_iter().map(|spec| Spec { sizes: vec![3, 1], ..spec }).collect()
}

/// Checks the gradient with respect to the values x, `[total, d_x]`, locations held.
#[track_caller]
fn check_values(network: &Network, grad_values: &[f64], sets: &Sets, loss: impl Fn(&Sets) -> f64) {
    let (d, dx) = (network.shape.element_dim(), network.value_dim());
    let values: Vec<_> = sets.elements.chunks(d).flat_map(|row| row[..dx].to_vec()).collect();
    check("x₀", &values, grad_values, |x| {
        let mut moved = sets.clone();
        for (to, from) in moved.elements.chunks_mut(d).zip(x.chunks(dx)) {
            to[..dx].copy_from_slice(from);
        }
        loss(&moved)
    });
}

#[test]
fn langevin_gradients_are_finite_differences() {
    let mut clamped = 0;
    for (spec, motion) in
        dynamics_specs().iter().flat_map(|s| motions().into_iter().map(move |m| (s, m)))
    {
        let plan = LangevinPlan {
            step_sizes: vec![0.3, 0.2, 0.4],
            noise_scales: vec![0.5, 0.0, 0.3],
            noise: Stream::new(spec.seed, "noise"),
            motion,
        };
        let case = Case::draw_where(spec, |network, sets, i| {
            network.langevin_distance(sets, &plan, i) > CLEARANCE
        })
        .expect("clear");
        let (network, sets) = (case.network(), case.sets());
        let lambda = widen(&case.like_values("lambda"));
        // One κ per set, so that the loss can be written with the sums per set.
        let kappa = widen(&case.normals("kappa", 2));
        let loss = |sets: &Sets, plan: &LangevinPlan<'_>| {
            let run = network.langevin(sets, plan);
            let dx = network.value_dim();
            let x: Vec<_> = run
                .elements
                .chunks(network.shape.element_dim())
                .flat_map(|r| r[..dx].to_vec())
                .collect();
            let kinetic = |s: usize| run.kinetic[s * 3..(s + 1) * 3].iter().sum::<f64>();
            dot(&x, &lambda) + kappa[0] * kinetic(0) + kappa[1] * kinetic(1)
        };
        let per_element = [kappa[0], kappa[0], kappa[0], kappa[1]];
        let gradients = network.langevin_backward(&sets, &plan, &lambda, &per_element);
        clamped += gradients.values.iter().filter(|g| **g == 0.0).count();
        check_values(&network, &gradients.values, &sets, |sets| loss(sets, &plan));
        check("context", &sets.context, &gradients.context, |c| {
            loss(&Sets { context: c.to_vec(), ..sets.clone() }, &plan)
        });
        check("step sizes", &plan.step_sizes, &gradients.step_sizes, |eta| {
            loss(&sets, &LangevinPlan { step_sizes: eta.to_vec(), ..plan.clone() })
        });
    }
    assert!(clamped > 0, "no draw met the clamp after a reflection");
}

#[test]
fn leapfrog_gradients_are_finite_differences() {
    for (spec, motion) in
        dynamics_specs().iter().flat_map(|s| motions().into_iter().map(move |m| (s, m)))
    {
        let plan = LeapfrogPlan { step_sizes: vec![0.3, 0.5, 0.4], motion };
        let momentum = |count| widen(&case::normals(spec.seed, "momentum", count));
        let case = Case::draw_where(spec, |network, sets, i| {
            let momentum = momentum(4 * network.value_dim());
            network.leapfrog_distance(sets, &momentum, &plan, i) > CLEARANCE
        })
        .expect("clear");
        let (network, sets) = (case.network(), case.sets());
        let dx = network.value_dim();
        let momentum = momentum(4 * dx);
        let lambda = widen(&case.like_values("lambda"));
        let mu = widen(&case.like_values("mu"));
        let loss = |sets: &Sets, momentum: &[f64], plan: &LeapfrogPlan<'_>| {
            let run = network.leapfrog(sets, momentum, plan);
            let x: Vec<_> = run
                .elements
                .chunks(network.shape.element_dim())
                .flat_map(|r| r[..dx].to_vec())
                .collect();
            dot(&x, &lambda) + dot(&run.momentum, &mu)
        };
        let gradients = network.leapfrog_backward(&sets, &momentum, &plan, (&lambda, &mu));
        check_values(&network, &gradients.values, &sets, |sets| loss(sets, &momentum, &plan));
        check("v₀", &momentum, &gradients.momentum, |v| loss(&sets, v, &plan));
        check("context", &sets.context, &gradients.context, |c| {
            loss(&Sets { context: c.to_vec(), ..sets.clone() }, &momentum, &plan)
        });
        check("step sizes", &plan.step_sizes, &gradients.step_sizes, |eta| {
            loss(&sets, &momentum, &LeapfrogPlan { step_sizes: eta.to_vec(), ..plan.clone() })
        });
    }
}
