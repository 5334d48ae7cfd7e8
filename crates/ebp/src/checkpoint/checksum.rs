//! CRC-32C, the checksum of checkpoints and of TensorBoard's records.
//!
//! The remainder of the message modulo the polynomial 0x1edc6f41 (Castagnoli), bits reflected,
//! started and finished with ones (RFC 3720, appendix B.4). It finds every truncation, every
//! burst of up to 32 bits, and all but one in 2³² of other damages. It is no protection against
//! intent.

/// The checksum of all `parts`, one after the other.
pub fn crc32c(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part))
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// The examples of RFC 3720, appendix B.4, and the check value of the CRC catalogue.
    #[test]
    fn published_values_come_out() {
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc32c(&[&[0; 32]]), 0x8a91_36aa);
        assert_eq!(crc32c(&[&[0xff; 32]]), 0x62a8_ab43);
        assert_eq!(crc32c(&[&ascending]), 0x46dd_794e);
        assert_eq!(crc32c(&[&descending]), 0x113f_db5c);
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[b"1234", b"", b"56789"]), 0xe306_9283);
        assert_eq!(crc32c(&[]), 0);
    }
}
