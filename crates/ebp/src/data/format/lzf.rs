//! LZF, the packing of PCD's compressed files.
//!
//! ```text
//! 000lllll                     l + 1 bytes as they follow
//! lllooooo oooooooo            l + 2 bytes from o + 1 back, 0 < l < 7
//! 111ooooo llllllll oooooooo   l + 9 bytes from o + 1 back
//! ```
//!
//! What is copied may overlap what it becomes. Three bytes make at most 264, so that the result is at
//! most 88 times as long as its source, whatever a header claims.

/// The unpacked bytes, which must be `length`; otherwise what was found instead.
pub(super) fn unpack(packed: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut position = 0;
    while position < packed.len() {
        position = token(packed, position, &mut out)?;
        if out.len() > length {
            return Err("more".into());
        }
    }
    if out.len() < length {
        return Err(format!("{} bytes", out.len()));
    }
    Ok(out)
}

/// Unpacks one token and says where the next one starts.
fn token(packed: &[u8], start: usize, out: &mut Vec<u8>) -> Result<usize, String> {
    let byte = |place: usize| {
        packed.get(place).copied().map(usize::from).ok_or("an end within a token".to_owned())
    };
    let head = byte(start)?;
    let (size, low) = (head >> 5, head & 31);
    if size == 0 {
        let end = start + 1 + low + 1;
        let plain = packed.get(start + 1..end).ok_or("an end within plain bytes")?;
        out.extend_from_slice(plain);
        return Ok(end);
    }
    let (count, place) =
        if size == 7 { (byte(start + 1)? + 9, start + 2) } else { (size + 2, start + 1) };
    let back = (low << 8 | byte(place)?) + 1;
    let Some(from) = out.len().checked_sub(back) else {
        return Err(format!("a copy from {back} back after {} bytes", out.len()));
    };
    // Byte by byte: a copy may reach into itself.
    for index in from..from + count {
        out.push(out[index]);
    }
    Ok(place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_what_the_table_says() {
        // `ab`, then five bytes from two back, then 9 + 3 bytes from one back.
        let packed = [1, b'a', b'b', 3 << 5, 1, 7 << 5, 3, 0];
        let expected = [&b"abababa"[..], &[b'a'; 12]].concat();
        assert_eq!(unpack(&packed, 19), Ok(expected));
        assert_eq!(unpack(&packed, 18), Err("more".into()));
        assert_eq!(unpack(&packed, 20), Err("19 bytes".into()));
        assert_eq!(unpack(&[], 0), Ok(Vec::new()));
        let found = |packed: &[u8]| unpack(packed, 9).unwrap_err();
        assert_eq!(found(&[3, 1, 2]), "an end within plain bytes");
        assert_eq!(found(&[0, 1, 3 << 5]), "an end within a token");
        assert_eq!(found(&[0, 1, 7 << 5, 3]), "an end within a token");
        assert_eq!(found(&[0, 1, 1 << 5, 1]), "a copy from 2 back after 1 bytes");
    }
}
