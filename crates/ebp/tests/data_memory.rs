//! A cache that is read from its map does not fill the memory, however large it is. Alone in this
//! file: the peak is one of the whole process.

mod large_cache;

/// A cache of 16 MiB and then one of 384 MiB, of which everything is read several times. Holding the
/// points once would take 368 MiB more; the map gives its pages back after 64 MiB at the most.
#[test]
fn a_large_cache_takes_no_more_memory_than_a_small_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut peaks = Vec::new();
    for mebibytes in [16, 384] {
        let path = folder.path().join("clouds.ebp");
        large_cache::write_cache(&path, mebibytes << 20).unwrap();
        large_cache::learn(&path, 32).unwrap();
        peaks.push(large_cache::peak_memory());
    }
    // Elsewhere than on Linux nobody says how much it was.
    if let [Some(small), Some(large)] = peaks[..] {
        assert!(large - small < 96 << 20, "{small} and {large} bytes");
    }
}
