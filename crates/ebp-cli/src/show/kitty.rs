//! The graphics protocol of kitty: PNG in base 64, in pieces.
//!
//! `a=T` shows at once, `f=100` is PNG, `c` columns scale the picture with its shape kept, `q=2` keeps the
//! terminal from answering, which the next command would read; `m=1` says that more follows.

use std::io::Write;

use super::base64;

/// Letters of a piece at most, by the protocol.
const PIECE: usize = 4096;

/// The escape sequences of a picture, and a line's end.
pub(super) fn encode(png: &[u8], columns: u32) -> Vec<u8> {
    let letters = base64::encode(png);
    let count = letters.len().div_ceil(PIECE);
    let mut bytes = Vec::with_capacity(letters.len() + 16 * count + 64);
    for (number, piece) in letters.chunks(PIECE).enumerate() {
        let first = if number == 0 { format!("a=T,f=100,q=2,c={columns},") } else { "q=2,".into() };
        let more = u8::from(number + 1 < count);
        // Writing to memory does not fail.
        let _ = write!(bytes, "\x1b_G{first}m={more};");
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\x1b\\");
    }
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_carry_the_picture() {
        let png: Vec<u8> = (0..10_000_u32).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
        let text = String::from_utf8(encode(&png, 42)).unwrap();
        let text = text.strip_suffix('\n').unwrap();
        let mut letters = String::new();
        let pieces: Vec<&str> = text.split_terminator("\x1b\\").collect();
        for (number, piece) in pieces.iter().enumerate() {
            let (keys, data) = piece.strip_prefix("\x1b_G").unwrap().split_once(';').unwrap();
            let keys: Vec<&str> = keys.split(',').collect();
            assert_eq!(keys.contains(&"a=T") && keys.contains(&"c=42"), number == 0);
            assert_eq!(keys.contains(&"m=1"), number + 1 < pieces.len());
            assert_eq!(keys.contains(&"m=0"), number + 1 == pieces.len());
            assert!(keys.contains(&"q=2") && data.len() <= 4096);
            // All but the last in whole groups of four.
            assert_eq!(data.len() % 4, 0);
            letters += data;
        }
        // 13,336 letters in pieces of 4096.
        assert_eq!(pieces.len(), 4);
        assert_eq!(base64::decode(letters.as_bytes()), png);
    }
}
