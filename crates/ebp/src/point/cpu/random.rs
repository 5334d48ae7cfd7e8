//! Many random numbers at once, on the instruction set of the machine: the same bits as those of
//! [`Stream`], whose own functions are compiled for every machine.

use super::vectorise::{VectorLoop, Vectoriser};
use crate::rng::Stream;

impl Vectoriser {
    /// As [`Stream::fill_normal`] of step 0 from index 0.
    pub(crate) fn fill_normal(self, stream: Stream, out: &mut [f32]) {
        self.run(Normals { stream, out });
    }

    /// As [`Stream::fill_uniform`] of step 0 from index 0.
    pub(crate) fn fill_uniform(self, stream: Stream, out: &mut [f32]) {
        self.run(Uniforms { stream, out });
    }
}

struct Normals<'a> {
    stream: Stream,
    out: &'a mut [f32],
}

impl VectorLoop for Normals<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.stream.fill_normal_inline(0, 0, self.out);
    }
}

struct Uniforms<'a> {
    stream: Stream,
    out: &'a mut [f32],
}

impl VectorLoop for Uniforms<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.stream.fill_uniform_inline(0, 0, self.out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_the_stream() {
        let stream = Stream::new(1, "noise");
        let (mut expected, mut found) = (vec![0.0; 1000], vec![0.0; 1000]);
        stream.fill_normal(0, 0, &mut expected);
        Vectoriser::new().fill_normal(stream, &mut found);
        assert_eq!(found, expected);
        stream.fill_uniform(0, 0, &mut expected);
        Vectoriser::new().fill_uniform(stream, &mut found);
        assert_eq!(found, expected);
    }
}
