//! The inline images of iTerm2: a file in base 64, with the width it gets.

use super::base64;

/// The escape sequence of a picture, and a line's end.
pub(super) fn encode(png: &[u8], columns: u32) -> Vec<u8> {
    let size = png.len();
    let keys = format!("inline=1;size={size};width={columns};height=auto;preserveAspectRatio=1");
    let mut bytes = format!("\x1b]1337;File={keys}:").into_bytes();
    bytes.extend(base64::encode(png));
    bytes.extend_from_slice(b"\x07\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_comes_back() {
        let png: Vec<u8> = (0..=255).rev().collect();
        let text = String::from_utf8(encode(&png, 12)).unwrap();
        let body = text.strip_prefix("\x1b]1337;File=").unwrap().strip_suffix("\x07\n").unwrap();
        let (keys, letters) = body.split_once(':').unwrap();
        assert!(keys.split(';').any(|key| key == "size=256"));
        assert!(keys.split(';').any(|key| key == "width=12"));
        assert_eq!(base64::decode(letters.as_bytes()), png);
    }
}
