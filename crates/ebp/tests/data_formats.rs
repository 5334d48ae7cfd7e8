//! Files of meshes, clouds, pictures and words: those that other libraries wrote, our own read
//! back, and what is refused where.
//!
//! The files in `tests/files` are made by `tools/reference/data_files.py` (NumPy 2.4.6, h5py
//! 3.16.0, trimesh 5.2.0, Pillow 13.0.0, pypcd4 1.5.1, scikit-learn 1.9.1, gensim 4.4.0).

#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use std::path::PathBuf;

use ebp::data::cloud::{Cloud, CloudFormat, cloud_bytes, parse_clouds};
use ebp::data::image::{
    Crop, ImageOptions, Images, idx_images_bytes, parse_idx_images, parse_idx_labels, parse_image,
    read_images,
};
use ebp::data::mesh::{mesh_bytes, parse_mesh};
use ebp::data::pattern::{parse_pattern, pattern_bytes, read_pattern};
use ebp::data::words::{
    docword_bytes, parse_docword, parse_svmlight, read_vocabulary, svmlight_bytes,
};
use ebp::data::{Mesh, read_cloud, read_clouds, read_mesh};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn tetrahedron() -> Mesh {
    Mesh {
        vertices: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5]],
        faces: vec![[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
    }
}

#[test]
fn meshes_of_trimesh_are_read() {
    for name in
        ["tetrahedron.off", "tetrahedron.obj", "tetrahedron_ascii.ply", "tetrahedron_binary.ply"]
    {
        assert_eq!(read_mesh(&file(name)).unwrap(), tetrahedron(), "{name}");
        assert_eq!(read_cloud(&file(name)).unwrap().len(), 4, "{name}");
    }
    let points = read_cloud(&file("tetrahedron.xyz")).unwrap();
    assert_eq!(
        points.points,
        tetrahedron().vertices.as_flattened().iter().map(|&x| x as f32).collect::<Vec<_>>()
    );
}

#[test]
fn arrays_of_h5py_are_read() {
    let expected = read_clouds(&file("clouds_f16.npy")).unwrap();
    for name in ["modelnet_classic.h5", "modelnet_latest.h5"] {
        let clouds = read_clouds(&file(name)).unwrap();
        assert_eq!(clouds.points(), expected.points(), "{name}");
        assert!(clouds.names()[1].ends_with("/1"));
    }
    assert_eq!(read_cloud(&file("plain_f64.h5")).unwrap().points, expected.cloud(1));
}

#[test]
fn modelnets_header_may_be_glued_to_the_counts() {
    let off = |text: &str| parse_mesh(text.as_bytes(), "a.off", "off");
    let body = "0 0 0\n1 0 0\n0 1 0\n1 1 0\n4 0 1 3 2\n";
    let glued = off(&format!("OFF4 1 0\n{body}")).unwrap();
    assert_eq!(glued, off(&format!("OFF\n# a comment\n4 1 0\n\n{body}")).unwrap());
    // A quad is two triangles.
    assert_eq!(glued.faces, [[0, 1, 3], [0, 3, 2]]);
    let message = |text: &str| off(text).unwrap_err().to_string();
    assert_eq!(message("OF4 1 0\n"), "a.off, line 1: expected `OFF`, found OF4 1 0");
    assert_eq!(
        message("OFF\n2 0 0\n0 0 0\n"),
        "a.off, line 3: expected vertex 1 of 2, found the end of the file"
    );
    assert_eq!(message("OFF1 0 0\n0 zero 0\n"), "a.off, line 2: expected a number, found zero");
    assert!(
        message(&format!("OFF4 1 0\n{}", body.replace("4 0 1 3 2", "3 0 1 4")))
            .ends_with("line 6: expected a corner below 4, found 4")
    );
    assert!(message("OFF99999999999999999999 0 0\n").contains("the number of vertices"));
    assert!(message("OFF9999999999999999 0 0\n").contains("vertex 0 of 9999999999999999"));
}

#[test]
fn obj_counts_from_one_and_from_the_end() {
    let obj = |text: &str| parse_mesh(text.as_bytes(), "a.obj", "obj");
    let text = "mtllib x\nv 0 0 0\nvn 0 0 1\nv 1 0 0 1\nv 0 1 0\nf -3//1 2/1/1 3\n";
    assert_eq!(obj(text).unwrap().faces, [[0, 1, 2]]);
    let message = |text: &str| obj(text).unwrap_err().to_string();
    assert!(
        message("v 0 0 0\nf 1 1 2\n").ends_with("line 2: expected corners from 1 to 1, found 2")
    );
    assert!(message("v 0 0 0\nf 0 1 1\n").contains("the number of a vertex, not 0, found `0`"));
    assert!(message("v 0 0 0\nf -2 1 1\n").contains("found `-2`"));
    assert!(message("v 0 0\n").contains("expected three coordinates, found `0 0`"));
    assert!(message("# nothing\n").contains("expected a vertex such as `v 0 0 0`"));
}

#[test]
fn ply_walks_over_what_it_does_not_know() {
    let header = |format: &str, rows: usize| {
        format!(
            "ply\nformat {format} 1.0\ncomment made by hand\nelement camera 1\n\
             property list uchar short k\nproperty double f\nelement vertex {rows}\n\
             property uchar red\nproperty double z\nproperty float y\nproperty short x\nend_header\n"
        )
    };
    let ascii = header("ascii", 2) + "2 7 8 1.5\n255 3 2 1\n0 -3 -2\n-1\n";
    let expected = [1.0, 2.0, 3.0, -1.0, -2.0, -3.0];
    assert_eq!(parse_clouds(ascii.as_bytes(), "a.ply", "ply").unwrap().points(), expected);
    for (format, is_little) in [("binary_little_endian", true), ("binary_big_endian", false)] {
        let mut bytes = header(format, 2).into_bytes();
        macro_rules! put {
            ($($number:expr),*) => {$(
                if is_little { bytes.extend($number.to_le_bytes()) } else { bytes.extend($number.to_be_bytes()) }
            )*};
        }
        put!(
            2_u8, 7_i16, 8_i16, 1.5_f64, 255_u8, 3_f64, 2_f32, 1_i16, 0_u8, -3_f64, -2_f32, -1_i16
        );
        assert_eq!(parse_clouds(&bytes, "a.ply", "ply").unwrap().points(), expected);
        bytes.pop();
        let error = parse_clouds(&bytes, "a.ply", "ply").unwrap_err().to_string();
        assert!(error.contains("expected 2 bytes of x, found 1 until the end"), "{error}");
    }
    let message =
        |text: &str| parse_clouds(text.as_bytes(), "a.ply", "ply").unwrap_err().to_string();
    assert!(message("plx\n").contains("line 1: expected `ply`, found plx"));
    assert!(message("ply\nformat utf8 1.0\n").contains("line 2: expected format ascii"));
    assert!(
        message("ply\nformat ascii 1.0\nelement vertex 9\nend_header\n").contains("properties of")
    );
    let floats = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nend_header\n1 2\n";
    assert!(message(floats).contains("a property `z` of the vertices"));
    let far = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n\
               element face 1\nproperty list uchar int vertex_indices\nend_header\n1 2 3\n3 0 1 2\n";
    assert!(message(far).contains("line 11: expected corners below 1, found 2"));
}

#[test]
fn pcd_finds_its_fields() {
    let text = "# .PCD v.7\nVERSION .7\nFIELDS rgb x y n z\nSIZE 4 4 4 4 8\nTYPE U F F F F\nCOUNT 1 1 1 3 1\n\
                WIDTH 2\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 2\nDATA ascii\n\
                9 1 2 0 0 1 3\n9 nan nan 0 0 1 nan\n";
    let clouds = parse_clouds(text.as_bytes(), "a.pcd", "pcd").unwrap();
    assert_eq!(&clouds.points()[..3], [1.0, 2.0, 3.0]);
    assert!(clouds.check_finite().is_err(), "what a scanner did not see is kept as NaN");
    let message =
        |text: &str| parse_clouds(text.as_bytes(), "a.pcd", "pcd").unwrap_err().to_string();
    assert!(
        message(&text.replace("DATA ascii", "DATA zip")).contains("or `DATA binary_compressed`")
    );
    let without = text.replace("COUNT 1 1 1 3 1", "COUNT 1 0 1 3 1");
    assert!(message(&without).contains("fields x, y and z, found no `x`"));
    assert!(message(&text.replace("POINTS 2", "POINTS 3")).contains("point 2 of 3"));
    assert!(message(&text.replace("SIZE 4 4 4 4 8", "SIZE 4 4")).contains("a word for each of 5"));
    assert!(
        message(&text.replace(" z\n", " w\n")).contains("expected fields x, y and z, found no `z`")
    );
    let binary = text.split("DATA").next().unwrap().to_owned() + "DATA binary\n1234";
    assert!(message(&binary).contains("expected 64 bytes of 2 points, found 4 until the end"));
}

#[test]
fn scans_of_pypcd4_are_read_in_all_three_encodings() {
    let expected: Vec<f32> =
        (0..200_u8).flat_map(|i| [f32::from(i) / 8.0, f32::from(i % 4), -0.5]).collect();
    for name in ["scan_ascii.pcd", "scan_binary.pcd", "scan_binary_compressed.pcd"] {
        assert_eq!(read_cloud(&file(name)).unwrap().points, expected, "{name}");
    }
}

#[test]
fn packed_scans_do_not_believe_their_sizes() {
    let bytes = std::fs::read(file("scan_binary_compressed.pcd")).unwrap();
    let start = bytes.windows(11).position(|part| part == b"compressed\n").unwrap() + 11;
    let message = |bytes: &[u8]| parse_clouds(bytes, "a", "pcd").unwrap_err().to_string();
    let with = |place: usize, number: u32| {
        let mut bytes = bytes.clone();
        bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
        message(&bytes)
    };
    assert!(with(start, u32::MAX).contains("expected 4294967295 bytes of packed points, found"));
    assert!(with(start, 9).contains("expected LZF of 3400 bytes, found"));
    assert!(with(start + 4, u32::MAX).contains("expected 3400 bytes of 200 points, unpacked"));
    assert!(with(start + 8, 0xffff_ffff).contains("LZF of 3400 bytes, found a copy from"));
    assert!(message(&bytes[..start + 3]).contains("4 bytes of the packed size, found 3 until"));
    let text = String::from_utf8_lossy(&bytes[..start]);
    let header = |points: &str| {
        let head = text.replace("POINTS 200", &format!("POINTS {points}"));
        message(&[head.as_bytes(), &bytes[start..]].concat())
    };
    assert!(header("99999999999999").contains("bytes of 99999999999999 points, unpacked"));
    assert!(header("9999999999999999999").contains("points that fit into memory"));
}

#[test]
fn a_small_gzip_file_cannot_fill_the_memory() {
    let gzip = |content: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut out, content).unwrap();
        out.finish().unwrap()
    };
    let message = |bytes: &[u8]| parse_idx_images(bytes, "a.gz").unwrap_err().to_string();
    // Two pictures of 2 x 3, and a thousand times as much behind them.
    let head = [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3];
    assert!(parse_idx_images(&gzip(&[&head[..], &[7; 12]].concat()), "a.gz").is_ok());
    assert_eq!(
        message(&gzip(&[&head[..], &[7; 12_000]].concat())),
        "a.gz, byte 0: expected 28 unpacked bytes, as the header inside says, found more"
    );
    // A header of 4 GiB, with zeros to follow it.
    let huge = [&[0, 0, 8, 3, 0, 0, 16, 0, 0, 0, 4, 0, 0, 0, 4, 0][..], &[0; 10_000]].concat();
    assert_eq!(
        message(&gzip(&huge)),
        "a.gz, byte 0: expected at most 67108864 bytes in 145 of gzip, found a header of 4294967312"
            .replace("145", &gzip(&huge).len().to_string())
    );
    let endless = [&[0, 0, 8, 3][..], &[255; 12]].concat();
    assert!(message(&gzip(&endless)).contains("numbers that fit into memory"));
    assert!(message(&gzip(&head[..9])).contains("4 bytes of the length of an axis, found 1"));
}

#[test]
fn lines_of_numbers_are_points() {
    let read = |text: &str| parse_clouds(text.as_bytes(), "a.txt", "txt");
    assert_eq!(
        read("1,2,3,0,0,1\n4,5,6,0,1,0\n").unwrap().points(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(read("2\n1 2\n3 4\n").unwrap().dim(), 2);
    let message = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(
        message("3\n1 2 3\n"),
        "a.txt, line 1: expected 3 points, as this line says, found 1 in the file"
    );
    assert!(message("1 2 3\n1 2\n").contains("line 2: expected 3 numbers as before, found 2"));
    assert!(message("x y z\n").contains("line 1: expected a number, found x"));
    assert!(message("\n\n").contains("expected a point"));
}

#[test]
fn pictures_of_pillow_are_read() {
    let png = read_images(&file("picture.png"), &ImageOptions::default()).unwrap();
    assert_eq!((png.width, png.height, png.channels), (8, 6, 3));
    // Red is 32 columns, green 40 rows, blue 128.
    assert_eq!(&png.image(0)[3 * (2 * 8 + 5)..][..3], [160, 80, 128]);
    let jpg = read_images(&file("picture.jpg"), &ImageOptions::default()).unwrap();
    let far = png.pixels.iter().zip(&jpg.pixels).map(|(&a, &b)| a.abs_diff(b)).max().unwrap();
    assert!(far <= 12, "a JPEG of quality 95 is off by {far}");
    let grey = read_images(&file("grey.png"), &ImageOptions::default()).unwrap();
    assert_eq!((grey.channels, grey.pixels[5]), (1, 160));
    // The centred square of 3 starts at ((8 − 3)/2, (6 − 3)/2), rounded up: (3, 2).
    let options = ImageOptions { crop: Crop::Square(3), is_grey: true, ..ImageOptions::default() };
    let square = read_images(&file("picture.png"), &options).unwrap();
    assert_eq!((square.width, square.channels), (3, 1));
    // 0.299 · 96 + 0.587 · 80 + 0.114 · 128 = 90.3
    assert_eq!(square.pixels[0], 90);
    let options = ImageOptions { size: Some((4, 4)), ..ImageOptions::default() };
    let folder = read_images(&file(""), &options).unwrap();
    assert_eq!(folder.names, ["grey.png", "picture.jpg", "picture.png"]);
    assert_eq!(folder.channels, 1, "as the first one");
    let error = read_images(&file(""), &ImageOptions { crop: Crop::Share(0.0), ..options });
    assert!(error.is_err());
    assert!(parse_image(b"GIF89a", "a.png", &options).is_err());
}

#[test]
fn celebas_crop_is_the_usual_one_at_both_sizes() {
    for (width, height, left, top, side) in [(178, 218, 15, 35, 148), (89, 109, 8, 18, 74)] {
        let mut picture = image::RgbImage::new(width, height);
        for (x, y, pixel) in picture.enumerate_pixels_mut() {
            let is_inside = (left..left + side).contains(&x) && (top..top + side).contains(&y);
            *pixel = image::Rgb([if is_inside { 200 } else { 0 }; 3]);
        }
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let face = parse_image(bytes.get_ref(), "a.png", &ImageOptions::CELEBA_32).unwrap();
        assert_eq!((face.width, face.height), (32, 32));
        assert!(face.pixels.iter().all(|&pixel| pixel == 200), "nothing from outside the square");
    }
}

#[test]
fn mnists_files_are_read() {
    let images = read_images(&file("images-idx3-ubyte.gz"), &ImageOptions::default()).unwrap();
    assert_eq!((images.len(), images.height, images.width), (2, 2, 3));
    assert_eq!(images.image(1), [6, 7, 8, 9, 10, 11]);
    let bytes = idx_images_bytes(&images).unwrap();
    assert_eq!(parse_idx_images(&bytes, "a").unwrap(), images);
    let message = |bytes: &[u8]| parse_idx_images(bytes, "a").unwrap_err().to_string();
    assert_eq!(
        message(&bytes[..20]),
        "a, byte 16: expected 12 bytes of numbers of shape [2, 2, 3], found 4 until the end"
    );
    assert!(message(&[1, 0, 8, 3]).contains("byte 0: expected 0 0, a known type"));
    let huge = [&[0, 0, 8, 3][..], &[255; 12]].concat();
    assert!(message(&huge).contains("sizes whose product overflows"));
    assert_eq!(parse_idx_labels(&[0, 0, 8, 1, 0, 0, 0, 2, 7, 3], "a").unwrap(), [7, 3]);
}

#[test]
fn words_and_patterns_are_read_back() {
    let bags = parse_svmlight(b"1 3:2 1:1\n-1 2:5\n", "a").unwrap();
    assert_eq!(parse_svmlight(&svmlight_bytes(&bags), "a").unwrap(), bags);
    let docword = parse_docword(b"5\n4\n3\n1 2 1\n1 4 7\n4 1 2\n", "a").unwrap();
    assert_eq!((&docword.ids[..], &docword.words[..]), (&[0, 3][..], &[1, 3, 0][..]));
    assert_eq!(parse_docword(&docword_bytes(&docword), "a").unwrap(), docword);
    let message = |text: &str| parse_docword(text.as_bytes(), "a").unwrap_err().to_string();
    assert!(
        message("5\n4\n1\n6 1 1\n").contains("line 4: expected a document from 1 to 5, found 6")
    );
    assert!(
        message("5\n4\n2\n2 1 1\n1 1 1\n").contains("documents in rising order, found 1 after 2")
    );
    assert!(message("5\n4\n99999999999\n2 1 1\n").contains("entry 1 of 99999999999"));
    let error = parse_svmlight(b"1 3:2.5\n", "a").unwrap_err().to_string();
    assert_eq!(error, "a, line 1: expected `word:count`, whole numbers, found `3:2.5`");

    let text = "3\nPINES\n0 96 0 100 10\n1 99 2 62\n96 0\n";
    let pattern = parse_pattern(text.as_bytes(), "a").unwrap();
    assert_eq!(pattern.window, [[0.0, 9.6], [0.0, 10.0]]);
    assert_eq!(pattern.points, [[0.1, 9.9], [0.2, 6.2], [9.6, 0.0]]);
    assert_eq!(parse_pattern(&pattern_bytes(&pattern), "a").unwrap(), pattern);
    let message = |text: &str| parse_pattern(text.as_bytes(), "a").unwrap_err().to_string();
    assert!(
        message(&text.replace("96 0\n", "97 0\n"))
            .contains("line 5: expected a point inside 0 to 9.6, found 97")
    );
    assert!(message(&text.replace('3', "4")).contains("line 1: expected 4 points"));
}

#[test]
fn words_of_scikit_learn_and_gensim_are_read() {
    for name in ["words_from_zero.svmlight", "words_from_one.svmlight"] {
        let bags = parse_svmlight(&std::fs::read(file(name)).unwrap(), name).unwrap();
        assert_eq!((&bags.words[..], &bags.counts[..]), (&[0, 3, 1, 3][..], &[2, 1, 5, 3][..]));
        assert_eq!((&bags.labels[..], &bags.ids[..]), (&[1.0, 0.5][..], &[0, 2][..]), "{name}");
    }
    let bags = parse_docword(&std::fs::read(file("docword.gensim.txt")).unwrap(), "a").unwrap();
    assert_eq!((&bags.words[..], &bags.counts[..]), (&[0, 1, 0, 2, 1][..], &[2, 1, 1, 1, 4][..]));
    assert_eq!(bags.ids, [0, 1, 2]);
    assert_eq!(read_vocabulary(&file("vocab.gensim.txt")).unwrap(), ["sea", "sun", "wind"]);
}

#[test]
fn a_pattern_may_be_written_as_r_does() {
    let pattern = read_pattern(&file("pattern.dat")).unwrap();
    assert_eq!((pattern.title.as_str(), pattern.window), ("STAIRS", [[0.0, 1.2], [0.0, 1.0]]));
    let expected: Vec<[f64; 2]> =
        (0..7).map(|i| [i, 10 - i].map(|x| f64::from(x) / 10.0)).collect();
    assert_eq!(pattern.points, expected);
}

fn cloud() -> impl Strategy<Value = Cloud> {
    prop::collection::vec(
        prop_oneof![-1e3_f32..1e3, any::<f32>().prop_filter("finite", |x| x.is_finite())],
        3..60,
    )
    .prop_map(|mut points| {
        points.truncate(points.len() / 3 * 3);
        Cloud { dim: 3, points }
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(2020),
        ..ProptestConfig::default()
    })]

    #[test]
    fn clouds_are_read_back_from_every_format(cloud in cloud()) {
        let formats = [
            (CloudFormat::Npy, "npy"), (CloudFormat::PlyAscii, "ply"), (CloudFormat::PlyLittle, "ply"),
            (CloudFormat::PlyBig, "ply"), (CloudFormat::Off, "off"), (CloudFormat::Obj, "obj"),
            (CloudFormat::PcdAscii, "pcd"), (CloudFormat::PcdBinary, "pcd"), (CloudFormat::Xyz, "xyz"),
        ];
        for (format, ending) in formats {
            let bytes = cloud_bytes(&cloud, format).unwrap();
            let read = parse_clouds(&bytes, "a", ending).unwrap();
            prop_assert_eq!(read.points(), &cloud.points[..]);
        }
    }

    #[test]
    fn meshes_are_read_back_from_every_format(cloud in cloud(), corners in prop::collection::vec(any::<prop::sample::Index>(), 0..30)) {
        let vertices: Vec<[f64; 3]> = cloud.points.chunks_exact(3).map(|p| [p[0], p[1], p[2]].map(f64::from)).collect();
        let corners: Vec<u32> = corners.iter().map(|index| index.index(vertices.len()) as u32).collect();
        let faces = corners.chunks_exact(3).map(|f| [f[0], f[1], f[2]]).collect();
        let mesh = Mesh { vertices, faces };
        for ending in ["off", "obj", "ply"] {
            let bytes = mesh_bytes(&mesh, ending).unwrap();
            prop_assert_eq!(&parse_mesh(&bytes, "a", ending).unwrap(), &mesh);
        }
    }

    #[test]
    fn pictures_are_read_back(width in 1..9_usize, height in 1..9_usize, count in 1..4_usize, seed in any::<u8>()) {
        let pixels: Vec<u8> = (0..width * height * count).map(|i| (i as u8).wrapping_mul(seed)).collect();
        let names = (0..count).map(|i| i.to_string()).collect();
        let images = Images::new(width, height, 1, pixels, names).unwrap();
        prop_assert_eq!(parse_idx_images(&idx_images_bytes(&images).unwrap(), "a").unwrap(), images);
    }
}
