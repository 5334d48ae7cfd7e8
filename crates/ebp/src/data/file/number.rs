//! Numbers as files hold them: eleven kinds in two byte orders.

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

/// What a number is stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

/// A float that numbers of files are turned into: f32 or f64.
pub trait Real: Copy + Default + Send + Sync + sealed::Sealed + 'static {
    /// The nearest number of this type.
    fn nearest(number: f64) -> Self;
    /// The same number in 64 bits.
    fn wide(self) -> f64;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Real for f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
    fn nearest(number: f64) -> Self {
        number as Self
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn nearest(number: f64) -> Self {
        number
    }

    fn wide(self) -> f64 {
        self
    }
}

impl NumberKind {
    /// Bytes of one number.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The number in the first `size` bytes; 0 if there are fewer.
    #[inline]
    pub(crate) fn read(self, bytes: &[u8], order: ByteOrder) -> f64 {
        macro_rules! number {
            ($kind:ty) => {{
                let Some(&raw) = bytes.first_chunk::<{ size_of::<$kind>() }>() else { return 0.0 };
                match order {
                    ByteOrder::Little => <$kind>::from_le_bytes(raw),
                    ByteOrder::Big => <$kind>::from_be_bytes(raw),
                }
            }};
        }
        match self {
            Self::I8 => f64::from(number!(i8)),
            Self::U8 => f64::from(number!(u8)),
            Self::I16 => f64::from(number!(i16)),
            Self::U16 => f64::from(number!(u16)),
            Self::I32 => f64::from(number!(i32)),
            Self::U32 => f64::from(number!(u32)),
            Self::I64 => number!(i64) as f64,
            Self::U64 => number!(u64) as f64,
            Self::F16 => half_to_double(number!(u16)),
            Self::F32 => f64::from(number!(f32)),
            Self::F64 => number!(f64),
        }
    }

    /// Appends the nearest number of this kind, little-endian.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the nearest number of the kind is asked for"
    )]
    pub(crate) fn write(self, number: f64, out: &mut Vec<u8>) {
        match self {
            Self::I8 => out.extend((number as i8).to_le_bytes()),
            Self::U8 => out.push(number as u8),
            Self::I16 => out.extend((number as i16).to_le_bytes()),
            Self::U16 => out.extend((number as u16).to_le_bytes()),
            Self::I32 => out.extend((number as i32).to_le_bytes()),
            Self::U32 => out.extend((number as u32).to_le_bytes()),
            Self::I64 => out.extend((number as i64).to_le_bytes()),
            Self::U64 => out.extend((number as u64).to_le_bytes()),
            Self::F16 => out.extend(double_to_half(number).to_le_bytes()),
            Self::F32 => out.extend((number as f32).to_le_bytes()),
            Self::F64 => out.extend(number.to_le_bytes()),
        }
    }

    /// All numbers in `bytes`, which hold a whole number of them.
    pub(crate) fn read_all<T: Real>(self, bytes: &[u8], order: ByteOrder) -> Vec<T> {
        // The kind is matched once per number, which the compiler hoists out of the loop.
        bytes.chunks_exact(self.size()).map(|raw| T::nearest(self.read(raw, order))).collect()
    }
}

/// The value of an IEEE 754 half: (−1)^s 2^(e−25) (1024 + m), subnormal where e = 0.
pub(crate) fn half_to_double(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(exponent - 25),
    }
}

/// The nearest half, ties to even, as NumPy rounds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both casts are of small non-negative whole numbers"
)]
pub(crate) fn double_to_half(number: f64) -> u16 {
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let size = number.abs();
    if size.is_nan() {
        return sign | 0x7e00;
    }
    // The largest half is 65504; what rounds to 65536 is infinite.
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    if size < 2_f64.powi(-14) {
        // A carry to 1024 is the smallest normal, as it should be.
        return sign | (size * 2_f64.powi(24)).round_ties_even() as u16;
    }
    let exponent = ((size.to_bits() >> 52) as i32) - 1023;
    let fraction = (size * 2_f64.powi(10 - exponent)).round_ties_even() as u16;
    // A carry out of the fraction raises the exponent, which is right.
    sign | ((((exponent + 15) as u16) << 10) + (fraction - 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every half goes through f64 and back to its own bits.
    #[test]
    fn halves_survive_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let number = half_to_double(bits);
            if number.is_nan() {
                assert!(half_to_double(double_to_half(number)).is_nan());
            } else {
                assert_eq!(double_to_half(number), bits, "{number}");
            }
        }
    }

    /// Values of IEEE 754-2008, table 3.5 and its examples.
    #[test]
    fn halves_have_their_published_values() {
        let cases: [(u16, f64); 6] = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2_f64.powi(-24)),
            (0x0400, 2_f64.powi(-14)),
            (0x3555, 0.333_251_953_125),
        ];
        for (bits, value) in cases {
            assert!((half_to_double(bits) - value).abs() < f64::MIN_POSITIVE, "{bits:#x}");
        }
        assert_eq!(double_to_half(1.0 / 3.0), 0x3555);
        assert_eq!(double_to_half(65519.9), 0x7bff);
        assert_eq!(double_to_half(65520.0), 0x7c00);
        // Halfway between 2048 and 2050: to the even fraction.
        assert_eq!(double_to_half(2049.0), double_to_half(2048.0));
    }
}
