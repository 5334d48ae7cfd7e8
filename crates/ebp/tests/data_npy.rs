//! NumPy's arrays: files that NumPy wrote, files of our own, and what is refused where.
//!
//! The files in `tests/files` are made by `tools/reference/data_files.py` (NumPy 2.4.6); their
//! numbers are i + j/8 − k/4.

use std::fs;
use std::path::PathBuf;

use ebp::Error;
use ebp::data::npy::{
    Array, Precision, npy_bytes, parse_npy, read_npy, read_npz, write_npy, write_npz,
};
use ebp::data::{read_cloud, read_clouds};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn expected(clouds: std::ops::Range<usize>, points: usize) -> Vec<f64> {
    let value = |i: usize, j: usize, k: usize| i as f64 + j as f64 / 8.0 - k as f64 / 4.0;
    clouds
        .flat_map(|i| (0..points).flat_map(move |j| (0..3).map(move |k| value(i, j, k))))
        .collect()
}

#[test]
fn numpys_files_are_read_in_every_kind_and_order() {
    let names =
        ["clouds_f16.npy", "clouds_f32_fortran.npy", "clouds_f64_big.npy", "clouds_version2.npy"];
    for name in names {
        let array = read_npy::<f64>(&file(name)).unwrap();
        assert_eq!(array.shape, [2, 5, 3], "{name}");
        assert_eq!(array.values, expected(0..2, 5), "{name}");
    }
    let labels = read_npy::<f32>(&file("labels_i64.npy")).unwrap();
    assert_eq!((labels.shape, labels.values), (vec![2], vec![3.0, 7.0]));
    let arrays = read_npz::<f64>(&file("clouds.npz")).unwrap();
    let names: Vec<_> = arrays.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["first", "label", "second"]);
    assert_eq!(arrays[2].1.values, expected(1..2, 2));
}

#[test]
fn clouds_come_from_arrays_archives_and_folders() {
    let clouds = read_clouds(&file("clouds_f16.npy")).unwrap();
    assert_eq!((clouds.num_clouds(), clouds.dim()), (2, 3));
    assert_eq!(clouds.names(), ["clouds_f16/0", "clouds_f16/1"]);
    let cloud = read_cloud(&file("cloud_f64_fortran.npy")).unwrap();
    assert_eq!((cloud.len(), cloud.dim), (5, 3));
    assert_eq!(cloud.points, clouds.cloud(1));
    assert!(read_cloud(&file("clouds_f16.npy")).unwrap_err().to_string().contains("one cloud"));

    // Arrays of different sizes make ragged clouds; labels are no cloud.
    let ragged = read_clouds(&file("clouds.npz")).unwrap();
    assert_eq!((ragged.offsets().size(0), ragged.offsets().size(1)), (5, 2));
    assert_eq!(ragged.names(), ["clouds/first", "clouds/second"]);
    let packed = read_clouds(&file("clouds_compressed.npz")).unwrap();
    assert_eq!(packed.points(), clouds.points());

    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    let copies = [
        ("c.npy", "clouds_f16.npy"),
        ("b/z.npz", "clouds.npz"),
        ("a.npy", "cloud_f64_fortran.npy"),
    ];
    for (name, source) in copies {
        fs::copy(file(source), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("readme.md"), "not a cloud").unwrap();
    let all = read_clouds(folder.path()).unwrap();
    assert_eq!(all.names(), ["a", "b/z/first", "b/z/second", "c/0", "c/1"]);
    assert_eq!(all.cloud(4), clouds.cloud(1));

    fs::write(
        folder.path().join("d.npy"),
        npy_bytes(&Array::new(vec![1, 2], vec![1.0_f32, f32::NAN]).unwrap(), Precision::Single)
            .unwrap(),
    )
    .unwrap();
    let error = read_clouds(folder.path()).unwrap_err().to_string();
    assert_eq!(error, "`clouds` must be of 3 numbers a point, as a, found 2 in d");
    let error = read_clouds(&folder.path().join("d.npy")).unwrap().check_finite().unwrap_err();
    assert_eq!(error.to_string(), "`point 0 of `d`` must be finite, found NaN");
}

#[test]
fn what_is_wrong_is_named_with_its_byte() {
    let header = |text: &str| {
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes()].concat()
    };
    let cases: [(Vec<u8>, &str); 12] = [
        (vec![], "a.npy, byte 0: expected 6 bytes of the mark of an npy file, found 0 until"),
        (b"NUMPY array".to_vec(), "byte 0: expected the mark of an npy file"),
        (b"\x93NUMPY\x04\x00\x00\x00".to_vec(), "byte 6: expected version 1, 2 or 3, found 4"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "a header of at most 10000 bytes"),
        (b"\x93NUMPY\x01\x00\x05\x00{}".to_vec(), "byte 10: expected 5 bytes of the header"),
        (
            header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"),
            "numbers such as `<f4`, found |O",
        ),
        (
            header("{'descr': [('a', '<f4')], 'shape': (1,), }"),
            "byte 20: expected plain numbers, found records",
        ),
        (header("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }"), "True or False"),
        (header("{'descr': '<f4', 'shape': (1,), }"), "expected descr, fortran_order and shape"),
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"),
            "the length of an axis",
        ),
        // The product does not fit into 64 bits, or is far more than the file: nothing is allocated.
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
            "sizes whose product overflows",
        ),
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }"),
            "expected 4000000000000 bytes of numbers",
        ),
    ];
    for (bytes, expected) in cases {
        let error = parse_npy::<f32>(&bytes, "a.npy").unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }));
        assert!(error.to_string().contains(expected), "{expected:?}: {error}");
    }
    let error = parse_npy::<f32>(
        &npy_bytes(&Array::<f32>::new(vec![0, 3], vec![]).unwrap(), Precision::Half).unwrap()
            [..128],
        "a.npy",
    );
    assert!(error.unwrap().values.is_empty());
}

fn array() -> impl Strategy<Value = Array<f64>> {
    prop::collection::vec(0..4_usize, 0..5).prop_flat_map(|shape| {
        let count: usize = shape.iter().product();
        prop::collection::vec(-1e3..1e3, count)
            .prop_map(move |values| Array::new(shape.clone(), values).expect("fits"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(2020),
        ..ProptestConfig::default()
    })]

    #[test]
    fn arrays_are_read_back_as_they_were_written(array in array()) {
        let read = |precision| {
            parse_npy::<f64>(&npy_bytes(&array, precision).unwrap(), "a.npy").unwrap()
        };
        prop_assert_eq!(&read(Precision::Double), &array);
        // Relative rounding of 2⁻²⁴ and 2⁻¹¹; halves below 2⁻¹⁴ are rounded to 2⁻²⁵.
        for (precision, relative) in [(Precision::Single, 2_f64.powi(-24)), (Precision::Half, 2_f64.powi(-11))] {
            for (a, b) in read(precision).values.iter().zip(&array.values) {
                prop_assert!((a - b).abs() <= relative * b.abs() + 2_f64.powi(-25));
            }
        }
    }
}

#[test]
fn archives_are_read_back_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let array = |n: usize| Array::new(vec![n, 2], (0..2 * n).map(|i| i as f64).collect()).unwrap();
    let arrays = vec![("b".to_owned(), array(3)), ("a".to_owned(), array(1))];
    write_npz(&path, &arrays, Precision::Double).unwrap();
    assert_eq!(read_npz::<f64>(&path).unwrap(), arrays);
    write_npy(&folder.path().join("a.npy"), &arrays[0].1, Precision::Single).unwrap();
    assert_eq!(read_npy::<f64>(&folder.path().join("a.npy")).unwrap(), arrays[0].1);
    assert!(write_npz(&path, &[arrays[0].clone(), arrays[0].clone()], Precision::Half).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
}
