//! Every reader with files to start from, for mutations here and for the corpus of `fuzz/`.
#![allow(dead_code, reason = "each test uses its own part")]

use std::fs;
use std::path::PathBuf;

use ebp::Result;
use ebp::data::cloud::{Cloud, CloudFormat, cloud_bytes, parse_clouds};
use ebp::data::image::{ImageOptions, parse_idx_images, parse_idx_labels, parse_image};
use ebp::data::mesh::{mesh_bytes, parse_mesh};
use ebp::data::npy::{parse_npy, parse_npz};
use ebp::data::pattern::parse_pattern;
use ebp::data::table::parse_table;
use ebp::data::words::{parse_docword, parse_svmlight};
use ebp::data::{ColumnChoice, read_mesh};

/// One reader.
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) parse: fn(&[u8]) -> Result<()>,
    pub(crate) seeds: Vec<Vec<u8>>,
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn bytes(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| fs::read(file(name)).expect("a file of tests/files")).collect()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// All of them.
#[expect(clippy::too_many_lines, reason = "a flat list")]
pub(crate) fn readers() -> Vec<Reader> {
    let cloud = Cloud { dim: 3, points: (0..24_u8).map(|i| f32::from(i) / 8.0 - 1.0).collect() };
    let written = |formats: &[CloudFormat]| -> Vec<Vec<u8>> {
        formats.iter().map(|&format| cloud_bytes(&cloud, format).expect("a cloud")).collect()
    };
    let mesh = read_mesh(&file("tetrahedron.off")).expect("a mesh");
    vec![
        Reader {
            name: "npy",
            parse: |bytes| parse_npy::<f32>(bytes, "a").map(drop),
            seeds: bytes(&[
                "clouds_f16.npy",
                "clouds_f32_fortran.npy",
                "clouds_f64_big.npy",
                "clouds_version2.npy",
                "labels_i64.npy",
            ]),
        },
        Reader {
            name: "npz",
            parse: |bytes| parse_npz::<f32>(bytes, "a").map(drop),
            seeds: bytes(&["clouds.npz", "clouds_compressed.npz"]),
        },
        Reader {
            name: "ply",
            parse: |bytes| checked_mesh(bytes, "ply"),
            seeds: [
                written(&[CloudFormat::PlyAscii, CloudFormat::PlyLittle, CloudFormat::PlyBig]),
                bytes(&["tetrahedron_ascii.ply", "tetrahedron_binary.ply"]),
            ]
            .concat(),
        },
        Reader {
            name: "obj",
            parse: |bytes| checked_mesh(bytes, "obj"),
            seeds: [
                bytes(&["tetrahedron.obj"]),
                texts(&["v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3//1 2/1/1 3\n"]),
            ]
            .concat(),
        },
        Reader {
            name: "off",
            parse: |bytes| checked_mesh(bytes, "off"),
            seeds: [
                vec![mesh_bytes(&mesh, "off").expect("a mesh")],
                texts(&["OFF3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"]),
            ]
            .concat(),
        },
        Reader {
            name: "xyz",
            parse: |bytes| parse_clouds(bytes, "a", "xyz").map(drop),
            seeds: [written(&[CloudFormat::Xyz]), texts(&["2\n1,2\n3,4\n"])].concat(),
        },
        Reader {
            name: "pcd",
            parse: |bytes| parse_clouds(bytes, "a", "pcd").map(drop),
            seeds: [
                written(&[CloudFormat::PcdAscii, CloudFormat::PcdBinary]),
                bytes(&["scan_binary_compressed.pcd"]),
            ]
            .concat(),
        },
        Reader {
            name: "hdf5",
            parse: |bytes| parse_clouds(bytes, "a", "h5").map(drop),
            seeds: bytes(&["modelnet_classic.h5", "modelnet_latest.h5", "plain_f64.h5"]),
        },
        Reader {
            name: "idx",
            parse: |bytes| {
                parse_idx_labels(bytes, "a")
                    .map(drop)
                    .or_else(|_| parse_idx_images(bytes, "a").map(drop))
            },
            seeds: [
                bytes(&["images-idx3-ubyte.gz"]),
                vec![
                    [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3][..], &[7; 12]].concat(),
                    vec![0, 0, 13, 1, 0, 0, 0, 2, 63, 128, 0, 0, 64, 0, 0, 0],
                ],
            ]
            .concat(),
        },
        Reader {
            name: "image",
            parse: |bytes| parse_image(bytes, "a", &ImageOptions::CELEBA_32).map(drop),
            seeds: bytes(&["picture.png", "picture.jpg", "grey.png"]),
        },
        Reader {
            name: "svmlight",
            parse: |bytes| parse_svmlight(bytes, "a").map(drop),
            seeds: [
                texts(&["1 3:2 1:1\n-1 2:5\n0.5 1:1 # a note\n"]),
                bytes(&["words_from_zero.svmlight"]),
            ]
            .concat(),
        },
        Reader {
            name: "docword",
            parse: |bytes| parse_docword(bytes, "a").map(drop),
            seeds: [texts(&["5\n4\n3\n1 2 1\n1 4 7\n4 1 2\n"]), bytes(&["docword.gensim.txt"])]
                .concat(),
        },
        Reader {
            name: "pattern",
            parse: |bytes| parse_pattern(bytes, "a").map(drop),
            seeds: [
                texts(&["3\nPINES\n0 96 0 100 10\n1 99 2 62\n96 0\n"]),
                bytes(&["pattern.dat"]),
            ]
            .concat(),
        },
        Reader {
            name: "table",
            parse: |bytes| parse_table(bytes, "a", &ColumnChoice::default()).map(drop),
            seeds: texts(&["set,t,x\na,1,2\nb,3,4\na,5,6\n", "t1;t2;x\n1;2;\"3\"\n"]),
        },
    ]
}

/// Whatever mesh is returned, its faces have corners.
fn checked_mesh(bytes: &[u8], ending: &str) -> Result<()> {
    let mesh = parse_mesh(bytes, "a", ending)?;
    let has_corner = |&corner: &u32| (corner as usize) < mesh.vertices.len();
    assert!(mesh.faces.as_flattened().iter().all(has_corner));
    Ok(())
}
