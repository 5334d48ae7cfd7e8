//! Mixtures of Gaussians: draws of every component, picks, and densities anywhere.

use ebp::tape::{MixtureLaw, UniformPart};

use super::{Case, Input, Outputs, fixed, normals, random, scaled};

/// Components, dimensions, draws of each component, rows.
const SIZES: [(usize, usize, usize, usize); 5] =
    [(1, 1, 1, 1), (8, 1, 2, 5), (3, 2, 4, 3), (5, 3, 1, 2), (37, 3, 2, 2)];

pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (components, dims, each, rows) in SIZES {
        let law = MixtureLaw { components, dims };
        cases.extend([draws(law, each, rows), picks(law, 7 * each, rows)]);
        for uniform in [None, Some(UniformPart { share: 0.1, low: -1.0, high: 1.5 })] {
            cases.push(log_density(law, uniform, 3 * each, rows));
        }
    }
    // log σ beyond its limits is cut, and no gradient flows.
    let law = MixtureLaw { components: 2, dims: 1 };
    let mut cut = log_density(law, None, 4, 1);
    cut.inputs[0].values = vec![0.3, 0.0, 2.0, -0.2, 0.5, -0.5];
    cases.push(cut);
    cases
}

/// Larger ones, for the comparison of devices.
pub(crate) fn large() -> Vec<Case> {
    let law = MixtureLaw { components: 64, dims: 3 };
    let uniform = Some(UniformPart { share: 0.1, low: -2.0, high: 2.0 });
    vec![draws(law, 4, 20), picks(law, 300, 9), log_density(law, uniform, 280, 9)]
}

fn written(law: MixtureLaw, rows: usize) -> Input {
    scaled("mixtures", (rows, law.width()), 0.6)
}

/// One component: log π, μ and T row by row.
struct Component {
    log_pi: f64,
    mean: Vec<f64>,
    scale: Vec<Vec<f64>>,
}

fn components(law: MixtureLaw, row: &[f64]) -> Vec<Component> {
    let d = law.dims;
    let parts: Vec<&[f64]> = row.chunks(law.component_width()).collect();
    let log_sum = parts.iter().map(|part| part[0].exp()).sum::<f64>().ln();
    let component = |part: &&[f64]| {
        let mut under = part[1 + 2 * d..].iter();
        let scale = (0..d).map(|a| {
            let mut line: Vec<f64> = (0..a).map(|_| *under.next().unwrap()).collect();
            line.push(part[1 + d + a].clamp(-6.0, 1.5).exp());
            line
        });
        let scale = scale.collect();
        Component { log_pi: part[0] - log_sum, mean: part[1..=d].to_vec(), scale }
    };
    parts.iter().map(component).collect()
}

impl Component {
    fn draw(&self, xi: &[f64]) -> Vec<f64> {
        let line = |(line, mean): (&Vec<f64>, &f64)| {
            mean + line.iter().zip(xi).map(|(t, xi)| t * xi).sum::<f64>()
        };
        self.scale.iter().zip(&self.mean).map(line).collect()
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        let mut z: Vec<f64> = Vec::new();
        let mut log = self.log_pi;
        for (a, line) in self.scale.iter().enumerate() {
            let known: f64 = line.iter().zip(&z).map(|(t, z)| t * z).sum();
            z.push((x[a] - self.mean[a] - known) / line[a]);
            log -= 0.5 * (z[a] * z[a] + std::f64::consts::TAU.ln()) + line[a].ln();
        }
        log
    }
}

fn draws(law: MixtureLaw, each: usize, rows: usize) -> Case {
    let total = rows * law.components * each;
    let noise = fixed(random("noise", (total, law.dims)));
    Case::new(
        format!("mixture_draws {law:?}, {each} each of {rows} rows"),
        vec![written(law, rows), noise],
        move |tape, vars| {
            let found = tape.mixture_draws(vars[0], law, vars[1])?;
            Ok(Outputs { tracked: vec![found.values, found.log_shares], constants: Vec::new() })
        },
        move |inputs| {
            let mut noise = inputs[1].chunks(law.dims);
            let (mut values, mut shares) = (Vec::new(), Vec::new());
            for row in inputs[0].chunks(law.width()) {
                for component in components(law, row) {
                    for _ in 0..each {
                        values.extend(component.draw(noise.next().unwrap()));
                        shares.push(component.log_pi - (each as f64).ln());
                    }
                }
            }
            vec![values, shares]
        },
    )
}

fn picks(law: MixtureLaw, count: usize, rows: usize) -> Case {
    let total = rows * count;
    let mut uniforms = fixed(random("uniforms", (total, 1)));
    // Fractions of normals, on [0, 1).
    uniforms.values.iter_mut().for_each(|x| *x = (*x * 7.0).rem_euclid(1.0));
    let noise = fixed(random("noise", (total, law.dims)));
    Case::new(
        format!("mixture_picks {law:?}, {count} of {rows} rows"),
        vec![written(law, rows), uniforms, noise],
        move |tape, vars| {
            let found = tape.mixture_picks(vars[0], law, [vars[1], vars[2]])?;
            Ok(Outputs { tracked: Vec::new(), constants: vec![found] })
        },
        move |inputs| {
            let mut values = Vec::new();
            for (number, (u, xi)) in inputs[1].iter().zip(inputs[2].chunks(law.dims)).enumerate() {
                let row = &inputs[0][number / count * law.width()..][..law.width()];
                let all = components(law, row);
                let mut reached = 0.0;
                let chosen = all.iter().position(|component| {
                    reached += component.log_pi.exp();
                    *u < reached
                });
                values.extend(all[chosen.unwrap_or(all.len() - 1)].draw(xi));
            }
            vec![values]
        },
    )
}

fn log_density(law: MixtureLaw, uniform: Option<UniformPart>, count: usize, rows: usize) -> Case {
    let places = normals("places", rows * count * law.dims);
    let mut input = random("places", (rows * count, law.dims));
    input.values = places;
    Case::new(
        format!("mixture_log_density {law:?}, {count} of {rows} rows, {uniform:?}"),
        vec![written(law, rows), input],
        move |tape, vars| Ok(tape.mixture_log_density(vars[0], law, uniform, vars[1])?.into()),
        move |inputs| {
            let log_density = |(number, x): (usize, &[f64])| {
                let row = &inputs[0][number / count * law.width()..][..law.width()];
                let all = components(law, row);
                let q: f64 = all.iter().map(|component| component.log_density(x).exp()).sum();
                let Some(part) = uniform else { return q.ln() };
                let (low, high) = (f64::from(part.low), f64::from(part.high));
                let share = f64::from(part.share);
                let is_inside = x.iter().all(|x| (low..=high).contains(x));
                let even = if is_inside { share / (high - low).powf(law.dims as f64) } else { 0.0 };
                ((1.0 - share) * q + even).ln()
            };
            vec![inputs[1].chunks(law.dims).enumerate().map(log_density).collect()]
        },
    )
}
