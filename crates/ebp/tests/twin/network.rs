//! The network, element by element: value, gradient, score, and the gradient of the score.

use ebp::SetOffsets;
use ebp::point::{LayerShape, MlpShape, PointBatch, PointMlp};

use super::{add_to, widen};

/// A [`PointMlp`] with its parameters in f64.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    pub(crate) shape: MlpShape,
    pub(crate) parameters: Vec<f64>,
}

/// A [`PointBatch`] in f64.
#[derive(Clone, Debug)]
pub(crate) struct Sets {
    /// `[total, d_x + d_t]`
    pub(crate) elements: Vec<f64>,
    pub(crate) offsets: SetOffsets,
    /// `[sets, context_dim]`
    pub(crate) context: Vec<f64>,
}

/// All gradients of a scalar.
#[derive(Clone, Debug)]
pub(crate) struct Gradients {
    pub(crate) parameters: Vec<f64>,
    pub(crate) context: Vec<f64>,
    pub(crate) elements: Vec<f64>,
    /// Of anchors; empty where there are none.
    pub(crate) locations: Vec<f64>,
}

/// One element on its way through the network.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// a₀ = [x, t], then a_l = σ(z_l) of every layer, the output f last.
    pub(crate) activations: Vec<Vec<f64>>,
    /// z_l of every layer.
    pub(crate) preactivations: Vec<Vec<f64>>,
}

impl Trace {
    /// f
    pub(crate) fn output(&self) -> &[f64] {
        &self.activations[self.activations.len() - 1]
    }
}

impl Sets {
    pub(crate) fn new(batch: &PointBatch<'_>) -> Self {
        Self {
            elements: widen(batch.elements),
            offsets: batch.offsets.clone(),
            context: widen(batch.context),
        }
    }

    /// The row [x, t] of element `i`.
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        let d = self.elements.len() / self.offsets.num_elements();
        &self.elements[i * d..(i + 1) * d]
    }

    /// Where in `context` the context of set `set` lies.
    pub(crate) fn context_range(&self, set: usize) -> std::ops::Range<usize> {
        let k = self.context.len() / self.offsets.num_sets();
        set * k..(set + 1) * k
    }

    /// The context of the set that owns element `i`.
    pub(crate) fn context_of(&self, i: usize) -> &[f64] {
        &self.context[self.context_range(self.offsets.set_of(i))]
    }
}

impl Gradients {
    pub(crate) fn zero(network: &Network, sets: &Sets) -> Self {
        Self {
            parameters: vec![0.0; network.parameters.len()],
            context: vec![0.0; sets.context.len()],
            elements: vec![0.0; sets.elements.len()],
            locations: Vec::new(),
        }
    }
}

impl Network {
    pub(crate) fn new(mlp: &PointMlp) -> Self {
        Self { shape: mlp.shape().clone(), parameters: widen(mlp.parameters()) }
    }

    /// d_x
    pub(crate) fn value_dim(&self) -> usize {
        self.shape.config().value_dim
    }

    /// Whether σ follows layer `l`: after every hidden one, and after the output if asked for.
    fn is_activated(&self, l: usize) -> bool {
        l + 1 < self.shape.layers().len() || self.shape.config().activate_output
    }

    /// σ_l(z), the identity where no σ follows the layer.
    fn sigma(&self, l: usize, z: f64) -> f64 {
        if self.is_activated(l) { self.shape.config().activation.value(z) } else { z }
    }

    /// σ_l′(z)
    fn slope(&self, l: usize, z: f64) -> f64 {
        if self.is_activated(l) { self.shape.config().activation.slope(z) } else { 1.0 }
    }

    /// σ_l″(z)
    fn curvature(&self, l: usize, z: f64) -> f64 {
        if self.is_activated(l) { self.shape.config().activation.curvature(z) } else { 0.0 }
    }

    /// W a
    fn times_weight(&self, layer: &LayerShape, a: &[f64]) -> Vec<f64> {
        let weight = &self.parameters[layer.weight.clone()];
        weight.chunks(layer.inputs).map(|row| super::dot(row, a)).collect()
    }

    /// Wᵀ δ for the matrix W `[outputs, inputs]` that lies at `range`.
    fn times_transposed(&self, range: &std::ops::Range<usize>, delta: &[f64]) -> Vec<f64> {
        let weight = &self.parameters[range.clone()];
        let inputs = weight.len() / delta.len();
        let mut result = vec![0.0; inputs];
        for (j, &delta_j) in delta.iter().enumerate() {
            for (r, w) in result.iter_mut().zip(&weight[j * inputs..(j + 1) * inputs]) {
                *r += w * delta_j;
            }
        }
        result
    }

    /// a₀ = [x, t],   z_l = W_l a_{l−1} + C_l c + b_l,   a_l = σ_l(z_l)
    pub(crate) fn forward(&self, row: &[f64], context: &[f64]) -> Trace {
        let mut activations = vec![row.to_vec()];
        let mut preactivations = Vec::new();
        for (l, layer) in self.shape.layers().iter().enumerate() {
            let mut z = self.times_weight(layer, &activations[l]);
            add_to(&mut z, &self.parameters[layer.bias.clone()]);
            if let Some(range) = &layer.context_weight {
                let weight = &self.parameters[range.clone()];
                for (z, row) in z.iter_mut().zip(weight.chunks(context.len())) {
                    *z += super::dot(row, context);
                }
            }
            activations.push(z.iter().map(|&z| self.sigma(l, z)).collect());
            preactivations.push(z);
        }
        Trace { activations, preactivations }
    }

    /// The least |z| at which σ has a kink: how far the element is from a place where its
    /// derivatives jump. Infinite for smooth σ.
    pub(crate) fn kink_distance(&self, trace: &Trace) -> f64 {
        if !self.shape.config().activation.is_piecewise_linear() {
            return f64::INFINITY;
        }
        let activated = (0..trace.preactivations.len()).filter(|&l| self.is_activated(l));
        activated
            .flat_map(|l| &trace.preactivations[l])
            .fold(f64::INFINITY, |least, z| least.min(z.abs()))
    }

    /// ∂L/∂W += δ ⊗ a for the matrix at `range`.
    fn add_outer(parameters: &mut [f64], range: &std::ops::Range<usize>, delta: &[f64], a: &[f64]) {
        for (row, delta) in parameters[range.clone()].chunks_mut(a.len()).zip(delta) {
            row.iter_mut().zip(a).for_each(|(g, a)| *g += delta * a);
        }
    }

    /// What ∂L/∂z_l = δ gives to W_l, C_l, b_l and c.
    fn add_layer(
        &self,
        layer: &LayerShape,
        delta: &[f64],
        (input, context): (&[f64], &[f64]),
        (parameters, grad_context): (&mut [f64], &mut [f64]),
    ) {
        Self::add_outer(parameters, &layer.weight, delta, input);
        add_to(&mut parameters[layer.bias.clone()], delta);
        if let Some(range) = &layer.context_weight {
            Self::add_outer(parameters, range, delta, context);
            add_to(grad_context, &self.times_transposed(range, delta));
        }
    }

    /// Gradients of ⟨cotangent, f⟩ of one element: adds those of parameters and context to
    /// `into`, returns that of the row [x, t].
    ///
    /// δ_l = σ_l′(z_l) ∂L/∂a_l,   ∂L/∂a_{l−1} = W_lᵀ δ_l
    pub(crate) fn reverse(
        &self,
        trace: &Trace,
        context: &[f64],
        cotangent: &[f64],
        (parameters, grad_context): (&mut [f64], &mut [f64]),
    ) -> Vec<f64> {
        let mut grad = cotangent.to_vec();
        for (l, layer) in self.shape.layers().iter().enumerate().rev() {
            let z = &trace.preactivations[l];
            let delta: Vec<_> = z.iter().zip(&grad).map(|(&z, g)| self.slope(l, z) * g).collect();
            let input = &trace.activations[l];
            self.add_layer(layer, &delta, (input, context), (&mut *parameters, &mut *grad_context));
            grad = self.times_transposed(&layer.weight, &delta);
        }
        grad
    }

    /// Gradients of L = ⟨v, ∇ₓ f⟩ + u f of one element with one output, as [`Self::reverse`].
    ///
    /// ⟨v, ∇ₓ f⟩ is ḟ, the derivative of f along ȧ₀ = [v, 0]:
    ///
    /// ```text
    /// ż_l = W_l ȧ_{l−1},   ȧ_l = σ′(z_l) ż_l,   L = ḟ + u f
    /// ```
    ///
    /// and the reverse pass of that expression, with p = ∂L/∂a and q = ∂L/∂ȧ, is
    ///
    /// ```text
    /// p = u, q = 1 at the output
    /// ∂L/∂z_l = σ′(z_l) p_l + σ″(z_l) ż_l q_l      ∂L/∂ż_l = σ′(z_l) q_l
    /// ∂L/∂W_l = ∂L/∂z_l ⊗ a_{l−1} + ∂L/∂ż_l ⊗ ȧ_{l−1}
    /// p_{l−1} = W_lᵀ ∂L/∂z_l                       q_{l−1} = W_lᵀ ∂L/∂ż_l
    /// ```
    pub(crate) fn reverse_score(
        &self,
        trace: &Trace,
        context: &[f64],
        (v, u): (&[f64], f64),
        (parameters, grad_context): (&mut [f64], &mut [f64]),
    ) -> Vec<f64> {
        let layers = self.shape.layers();
        let mut tangents = vec![vec![0.0; self.shape.element_dim()]];
        tangents[0][..v.len()].copy_from_slice(v);
        let mut pretangents = Vec::new();
        for (l, layer) in layers.iter().enumerate() {
            let z_dot = self.times_weight(layer, &tangents[l]);
            let z = &trace.preactivations[l];
            tangents.push(z.iter().zip(&z_dot).map(|(&z, d)| self.slope(l, z) * d).collect());
            pretangents.push(z_dot);
        }

        let (mut p, mut q) = (vec![u], vec![1.0]);
        for (l, layer) in layers.iter().enumerate().rev() {
            let (z, z_dot) = (&trace.preactivations[l], &pretangents[l]);
            let units = 0..z.len();
            let grad_z: Vec<_> = units
                .clone()
                .map(|j| self.slope(l, z[j]) * p[j] + self.curvature(l, z[j]) * z_dot[j] * q[j])
                .collect();
            let grad_z_dot: Vec<_> = units.map(|j| self.slope(l, z[j]) * q[j]).collect();
            let input = &trace.activations[l];
            self.add_layer(
                layer,
                &grad_z,
                (input, context),
                (&mut *parameters, &mut *grad_context),
            );
            Self::add_outer(parameters, &layer.weight, &grad_z_dot, &tangents[l]);
            p = self.times_transposed(&layer.weight, &grad_z);
            q = self.times_transposed(&layer.weight, &grad_z_dot);
        }
        p
    }

    /// f and ∇ₓ f of one element with one output.
    pub(crate) fn score_of(&self, trace: &Trace) -> Vec<f64> {
        let mut grad = vec![1.0];
        for (l, layer) in self.shape.layers().iter().enumerate().rev() {
            let z = &trace.preactivations[l];
            let delta: Vec<_> = z.iter().zip(&grad).map(|(&z, g)| self.slope(l, z) * g).collect();
            grad = self.times_transposed(&layer.weight, &delta);
        }
        grad.truncate(self.value_dim());
        grad
    }

    /// f of every element.
    pub(crate) fn values(&self, sets: &Sets) -> Vec<f64> {
        (0..sets.offsets.num_elements())
            .flat_map(|i| self.forward(sets.row(i), sets.context_of(i)).output().to_vec())
            .collect()
    }

    /// Σ f over each set.
    pub(crate) fn set_sums(&self, sets: &Sets) -> Vec<f64> {
        let outputs = self.shape.config().output_dim;
        let mut sums = vec![0.0; sets.offsets.num_sets() * outputs];
        for (i, values) in self.values(sets).chunks(outputs).enumerate() {
            let set = sets.offsets.set_of(i);
            add_to(&mut sums[set * outputs..(set + 1) * outputs], values);
        }
        sums
    }

    /// Gradients of Σᵢ ⟨cotangentᵢ, fᵢ⟩, the cotangents being `[total, output_dim]`.
    pub(crate) fn backward(&self, sets: &Sets, cotangent: &[f64]) -> Gradients {
        let outputs = self.shape.config().output_dim;
        let mut gradients = Gradients::zero(self, sets);
        let mut rows = Vec::new();
        for i in 0..sets.offsets.num_elements() {
            let context = sets.context_of(i);
            let trace = self.forward(sets.row(i), context);
            let range = sets.context_range(sets.offsets.set_of(i));
            rows.extend(self.reverse(
                &trace,
                context,
                &cotangent[i * outputs..(i + 1) * outputs],
                (&mut gradients.parameters, &mut gradients.context[range]),
            ));
        }
        gradients.elements = rows;
        gradients
    }

    /// ∇ₓ f of every element.
    pub(crate) fn score(&self, sets: &Sets) -> Vec<f64> {
        (0..sets.offsets.num_elements())
            .flat_map(|i| self.score_of(&self.forward(sets.row(i), sets.context_of(i))))
            .collect()
    }

    /// Gradients of Σᵢ ⟨vᵢ, ∇ₓ fᵢ⟩ + Σᵢ uᵢ fᵢ, with v `[total, d_x]` and u `[total]`.
    pub(crate) fn score_backward(&self, sets: &Sets, v: &[f64], u: &[f64]) -> Gradients {
        let dx = self.value_dim();
        let mut gradients = Gradients::zero(self, sets);
        let mut rows = Vec::new();
        for i in 0..sets.offsets.num_elements() {
            let context = sets.context_of(i);
            let trace = self.forward(sets.row(i), context);
            let range = sets.context_range(sets.offsets.set_of(i));
            rows.extend(self.reverse_score(
                &trace,
                context,
                (&v[i * dx..(i + 1) * dx], u[i]),
                (&mut gradients.parameters, &mut gradients.context[range]),
            ));
        }
        gradients.elements = rows;
        gradients
    }
}
