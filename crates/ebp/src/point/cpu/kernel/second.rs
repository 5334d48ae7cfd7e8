//! Element-wise steps of second-order passes.
//!
//! Forward, the tangent ż meets slope and curvature; backward, the adjoint ā of the value and ᾱ of
//! the tangent become those of z and ż:
//!
//! ```text
//! ȧ = σ′ ż,   k = σ″ ż
//! z̄ = σ′ ā + k ᾱ,   adjoint of ż = σ′ ᾱ
//! ```

#[derive(Debug)]
pub(in super::super) struct Tangent<'a> {
    pub(in super::super) slopes: &'a [f32],
    /// ż on entry, ȧ on return.
    pub(in super::super) tangents: &'a mut [f32],
    /// σ″ on entry, k on return.
    pub(in super::super) curvatures: &'a mut [f32],
}

#[inline(always)]
pub(super) fn tangent(args: Tangent<'_>) {
    let pairs = args.tangents.iter_mut().zip(args.curvatures);
    for ((tangent, curvature), slope) in pairs.zip(args.slopes) {
        *curvature *= *tangent;
        *tangent *= slope;
    }
}

#[derive(Debug)]
pub(in super::super) struct Adjoint<'a> {
    /// σ′ on entry, the adjoint of ż on return.
    pub(in super::super) slopes: &'a mut [f32],
    /// k on entry, z̄ on return.
    pub(in super::super) curvatures: &'a mut [f32],
    /// ā.
    pub(in super::super) value_adjoints: &'a [f32],
    /// ᾱ.
    pub(in super::super) tangent_adjoints: &'a [f32],
}

#[inline(always)]
pub(super) fn adjoint(args: Adjoint<'_>) {
    let state = args.slopes.iter_mut().zip(args.curvatures);
    let adjoints = args.value_adjoints.iter().zip(args.tangent_adjoints);
    for ((slope, curvature), (value, tangent)) in state.zip(adjoints) {
        *curvature = *slope * value + *curvature * tangent;
        *slope *= tangent;
    }
}
