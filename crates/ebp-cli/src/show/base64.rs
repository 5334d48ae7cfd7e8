//! Base 64 of RFC 4648, with padding: how terminals want bytes.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as letters, four for three.
pub(super) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut letters = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|place| u32::from(three.get(place).copied().unwrap_or(0)));
        let bits = a << 16 | b << 8 | c;
        for place in 0..4 {
            // One byte fills two letters, two fill three.
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            letters.push(if place <= three.len() { letter } else { b'=' });
        }
    }
    letters
}

/// The way back.
#[cfg(test)]
pub(super) fn decode(letters: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for four in letters.chunks(4) {
        let value = |letter: &u8| LETTERS.iter().position(|known| known == letter);
        let values: Vec<usize> = four.iter().map_while(value).collect();
        let bits =
            values.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - values.len()));
        let all = [bits >> 16, bits >> 8, bits].map(|byte| u8::try_from(byte & 255).unwrap());
        bytes.extend(&all[..values.len() - 1]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_hold() {
        let examples =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, letters) in examples {
            assert_eq!(encode(bytes.as_bytes()), letters.as_bytes());
        }
        let all: Vec<u8> = (0..=255).collect();
        for count in 0..=all.len() {
            assert_eq!(decode(&encode(&all[..count])), &all[..count]);
        }
    }
}
