//! Numbers as files hold them: eleven kinds in two byte orders.

use half::f16;

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
            Self::F16 => f16::from_bits(number!(u16)).to_f64(),
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
            // By way of f32, as which nearly all numbers come here.
            Self::F16 => out.extend(f16::from_f32(number as f32).to_le_bytes()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: f64) -> u16 {
        let mut bytes = Vec::new();
        NumberKind::F16.write(number, &mut bytes);
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    fn read(bits: u16) -> f64 {
        NumberKind::F16.read(&bits.to_be_bytes(), ByteOrder::Big)
    }

    /// Every half goes through f64 and back to its own bits.
    #[test]
    fn halves_survive_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let number = read(bits);
            if number.is_nan() {
                assert!(read(written(number)).is_nan());
            } else {
                assert_eq!(written(number), bits, "{number}");
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
            assert!((read(bits) - value).abs() < f64::MIN_POSITIVE, "{bits:#x}");
        }
        assert_eq!(written(1.0 / 3.0), 0x3555);
        assert_eq!(written(65519.9), 0x7bff);
        assert_eq!(written(65520.0), 0x7c00);
        // Halfway between 2048 and 2050: to the even fraction.
        assert_eq!(written(2049.0), written(2048.0));
    }
}
