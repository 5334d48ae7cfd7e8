//! Cases larger than one block or one warp of a GPU, for the comparison of two devices.

use std::sync::Arc;

use ebp::point::{Activation, MlpConfig, MlpShape, Pooling};
use ebp::rng::Stream;
use ebp::tape::{AttentionSets, Choice, Operators, Points};
use ebp::{Result, SetOffsets};

use super::{Case, Outputs, fixed, random, scaled};

/// Devices judge each other: there is no twin.
fn pair(
    name: &str,
    inputs: Vec<super::Input>,
    build: impl Fn(&mut ebp::tape::Tape, &[ebp::tape::Var]) -> Result<Outputs> + 'static,
) -> Case {
    Case::new(name, inputs, build, |_| Vec::new())
}

pub(crate) fn all() -> Vec<Case> {
    let mut cases = vec![
        pair("sum of many", vec![random("x", (700, 301))], |tape, vars| {
            Ok(tape.sum(vars[0])?.into())
        }),
        pair("many rows of one column", vec![random("x", (20_001, 1))], |tape, vars| {
            let tracked = vec![tape.row_sums(vars[0])?, tape.column_sums(vars[0])?];
            Ok(Outputs { tracked, constants: Vec::new() })
        }),
        pair(
            "one row for many",
            vec![random("x", (20_001, 37)), random("row", (1, 37))],
            |tape, vars| Ok(tape.multiply(vars[0], vars[1])?.into()),
        ),
        pair("normalise many columns", vec![random("x", (501, 67))], |tape, vars| {
            let (standard, mean, scale) = tape.normalise_columns(vars[0])?;
            Ok(Outputs { tracked: vec![standard], constants: vec![mean, scale] })
        }),
        planar(1, 16, 16, 400),
        planar(3, 20, 200, 7),
        planar(2, 5, 3, 1500),
        attention(40, 4),
        attention(600, 2),
        attention(64, 1),
        log_mass(),
        spectral_norm(),
        sets(),
        chosen(),
    ];
    for pooling in [Pooling::Max, Pooling::Mean, Pooling::Sum] {
        cases.push(pool(pooling));
    }
    cases.extend(super::mixture::large());
    cases.extend(super::convolution::large());
    cases
}

fn planar(dims: usize, layers: usize, draws: usize, rows: usize) -> Case {
    let stream = Stream::new(9, "draws");
    let layers = scaled("layers", (rows, layers * (2 * dims + 1)), 0.7);
    let name = format!("planar d = {dims}, {draws} draws of {rows} rows");
    pair(&name, vec![layers], move |tape, vars| {
        let found = tape.planar(vars[0], dims, draws, stream)?;
        Ok(Outputs { tracked: vec![found.values, found.log_density], constants: Vec::new() })
    })
}

fn attention(width: usize, num_heads: usize) -> Case {
    let sizes = [(40, 90), (1, 200), (70, 3), (5, 0), (0, 7), (33, 33)];
    let sets = Arc::new(AttentionSets::from_sizes(sizes));
    let (queries, keys) = (sets.num_queries(), sets.num_keys());
    let inputs = vec![
        random("queries", (queries, width)),
        random("keys", (keys, width)),
        random("values", (keys, width)),
    ];
    pair(&format!("attention width {width}, {num_heads} heads"), inputs, move |tape, vars| {
        Ok(tape.attention(vars[0], vars[1], vars[2], &sets, num_heads)?.into())
    })
}

fn log_mass() -> Case {
    let symbols = Arc::new((0..30).map(|row| row * 131 % 4096).collect::<Vec<u32>>());
    let potentials = scaled("potentials", (30, 4096), 3.0);
    pair("log_mass of 4096 symbols", vec![potentials], move |tape, vars| {
        let shares = tape.softmax(vars[0])?;
        let tracked = vec![tape.log_mass(vars[0], &symbols)?];
        Ok(Outputs { tracked, constants: vec![shares] })
    })
}

fn spectral_norm() -> Case {
    let config =
        MlpConfig { hidden_widths: vec![130, 65], context_dim: 51, ..MlpConfig::default() };
    let shape = MlpShape::new(config).unwrap();
    let operators = Arc::new(Operators::new(&shape));
    let inputs = vec![
        random("weights", (1, shape.num_parameters())),
        fixed(random("left", (1, operators.num_rows()))),
    ];
    pair("spectral norms of wide layers", inputs, move |tape, vars| {
        let (normalised, left) = tape.spectral_norm(vars[0], vars[1], &operators, true)?;
        Ok(Outputs { tracked: vec![normalised], constants: vec![left] })
    })
}

fn sets() -> Case {
    let offsets = SetOffsets::from_sizes((0..60).map(|set| 1 + set * 37 % 300)).unwrap();
    let inputs = vec![random("x", (offsets.num_elements(), 45))];
    let offsets = Arc::new(offsets);
    pair("sums of ragged sets, spread again", inputs, move |tape, vars| {
        let sums = tape.set_sums(vars[0], &offsets)?;
        Ok(tape.spread(sums, &offsets)?.into())
    })
}

fn chosen() -> Case {
    let rows = (0..5000_u32).map(|i| i * i % 901).collect();
    let choice = Arc::new(Choice::new(901, rows).unwrap());
    pair("thousands of chosen rows", vec![random("x", (901, 13))], move |tape, vars| {
        Ok(tape.gather(vars[0], &choice)?.into())
    })
}

fn pool(pooling: Pooling) -> Case {
    let config = MlpConfig {
        context_dim: 0,
        hidden_widths: vec![64, 128],
        output_dim: 96,
        activation: Activation::Silu,
        ..MlpConfig::default()
    };
    let shape = Arc::new(MlpShape::new(config).unwrap());
    let offsets = SetOffsets::from_sizes([300, 1, 77, 140]).unwrap();
    let inputs = vec![
        scaled("parameters", (1, shape.num_parameters()), 0.15),
        random("elements", (offsets.num_elements(), 3)),
    ];
    let offsets = Arc::new(offsets);
    pair(&format!("pool {pooling:?} of larger sets"), inputs, move |tape, vars| {
        let points = Points {
            shape: Arc::clone(&shape),
            parameters: vars[0],
            elements: vars[1],
            context: None,
            offsets: Arc::clone(&offsets),
        };
        Ok(tape.point_pool(&points, pooling)?.into())
    })
}
