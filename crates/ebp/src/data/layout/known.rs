//! The data sets that are known by name.

use super::{Count, Expectation, Layout};

const fn expect(
    what: &'static str,
    place: &'static str,
    count: Count,
    expected: usize,
) -> Expectation {
    Expectation { what, place, count, expected: Some(expected) }
}

/// All data sets that are known by name.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "shapenet-pc15k",
        title: "ShapeNetCore.v2.PC15k: 15,000 points on each shape of ShapeNet's 55 classes, as \
                PointFlow prepared them (Yang et al., 2019)",
        licence: "ShapeNet's terms: research and education only, no redistribution; an account at \
                  shapenet.org is needed",
        origin: "the link in PointFlow's README (github.com/stevenygd/PointFlow), after agreeing to \
                 ShapeNet's terms",
        folder: "SYNSET/{train,val,test}/ID.npy, f32 [15000, 3]; 02691156 airplane, 03001627 chair, \
                 02958343 car. PointFlow trains on points 0..10000 of train and compares with \
                 points 10000..12048 of val",
        expectations: &[
            expect("airplane train", "02691156/train", Count::Files("npy"), 2832),
            expect("airplane val", "02691156/val", Count::Files("npy"), 405),
            expect("chair train", "03001627/train", Count::Files("npy"), 4612),
            expect("chair val", "03001627/val", Count::Files("npy"), 662),
            expect("car train", "02958343/train", Count::Files("npy"), 2458),
            expect("car val", "02958343/val", Count::Files("npy"), 352),
        ],
    },
    Layout {
        name: "latent-3d-points",
        title: "shape_net_core_uniform_samples_2048: 2048 points on each shape of ShapeNetCore, as \
                latent_3d_points prepared them (Achlioptas et al., 2018)",
        licence: "ShapeNet's terms: research and education only, no redistribution",
        origin: "the link in the README of github.com/optas/latent_3d_points",
        folder: "SYNSET/ID.ply, binary, vertices x y z; no splits",
        expectations: &[
            Expectation {
                what: "airplane",
                place: "02691156",
                count: Count::Files("ply"),
                expected: None,
            },
            Expectation {
                what: "chair",
                place: "03001627",
                count: Count::Files("ply"),
                expected: None,
            },
            Expectation {
                what: "car",
                place: "02958343",
                count: Count::Files("ply"),
                expected: None,
            },
        ],
    },
    Layout {
        name: "modelnet40-hdf5",
        title: "modelnet40_ply_hdf5_2048: 2048 points on each of ModelNet40's shapes, as PointNet \
                prepared them (Qi et al., 2017)",
        licence: "ModelNet's terms: academic research only (modelnet.cs.princeton.edu)",
        origin: "the link in PointNet's provider.py (github.com/charlesq34/pointnet)",
        folder: "ply_data_train0..4.h5 and ply_data_test0..1.h5 with `data` f32 [n, 2048, 3] and \
                 `label` u8 [n, 1]; shape_names.txt; train_files.txt and test_files.txt",
        expectations: &[
            expect("files of clouds", "", Count::Files("h5"), 7),
            expect("names of classes", "shape_names.txt", Count::Lines, 40),
        ],
    },
    Layout {
        name: "modelnet40-off",
        title: "ModelNet40: 12,311 meshes of 40 classes (Wu et al., 2015)",
        licence: "ModelNet's terms: academic research only",
        origin: "modelnet.cs.princeton.edu",
        folder: "CLASS/{train,test}/CLASS_0001.off; many headers are glued, `OFF490 518 0`",
        expectations: &[
            expect("train meshes", "", Count::FilesIn("train", "off"), 9843),
            expect("test meshes", "", Count::FilesIn("test", "off"), 2468),
        ],
    },
    Layout {
        name: "modelnet10-off",
        title: "ModelNet10: 4,899 meshes of 10 classes (Wu et al., 2015)",
        licence: "ModelNet's terms: academic research only",
        origin: "modelnet.cs.princeton.edu",
        folder: "CLASS/{train,test}/CLASS_0001.off",
        expectations: &[
            expect("train meshes", "", Count::FilesIn("train", "off"), 3991),
            expect("test meshes", "", Count::FilesIn("test", "off"), 908),
        ],
    },
    Layout {
        name: "modelnet10-npy",
        title: "2048 points on 3,977 training shapes of ModelNet10, z up, aligned, unit sphere",
        licence: "ModelNet's terms: academic research only",
        origin: "sampled from voxels of ModelNet10's train split; a local folder",
        folder: "CLASS.npy, f16 [count, 2048, 3]",
        expectations: &[
            expect("classes", "", Count::Files("npy"), 10),
            expect("clouds", "", Count::Rows, 3977),
            expect("chairs", "chair.npy", Count::Rows, 887),
        ],
    },
    Layout {
        name: "psb-npy",
        title: "2048 points on 1,811 shapes of the Princeton Shape Benchmark (Shilane et al., 2004), \
                poses not aligned",
        licence: "the benchmark's terms: research, with each model's own copyright",
        origin: "shape.cs.princeton.edu/benchmark; a local folder",
        folder: "points.npy f16 [1811, 2048, 3]; index.csv with row, coarse_class, id",
        expectations: &[
            expect("clouds", "points.npy", Count::Rows, 1811),
            expect("lines of the index", "index.csv", Count::Lines, 1812),
        ],
    },
    Layout {
        name: "mnist",
        title: "MNIST: 70,000 handwritten digits of 28×28 (LeCun et al., 1998)",
        licence: "Creative Commons Attribution-Share Alike 3.0",
        origin: "yann.lecun.com/exdb/mnist and its mirrors",
        folder: "train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, \
                 t10k-labels-idx1-ubyte.gz, packed or not",
        expectations: &[
            expect("train pictures", "train-images-idx3-ubyte.gz", Count::Items, 60_000),
            expect("train labels", "train-labels-idx1-ubyte.gz", Count::Items, 60_000),
            expect("test pictures", "t10k-images-idx3-ubyte.gz", Count::Items, 10_000),
            expect("test labels", "t10k-labels-idx1-ubyte.gz", Count::Items, 10_000),
        ],
    },
    Layout {
        name: "celeba",
        title: "CelebA: 202,599 aligned faces of 178×218 (Liu et al., 2015)",
        licence: "non-commercial research only; no redistribution",
        origin: "mmlab.ie.cuhk.edu.hk/projects/CelebA.html, img_align_celeba.zip",
        folder: "img_align_celeba/000001.jpg …, as a folder or as the zip archive. `--celeba` crops \
                 the central 148 of 178 columns and resizes to 32×32; smaller copies are cropped \
                 alike",
        expectations: &[Expectation {
            what: "pictures (202,599 in the whole set)",
            place: "",
            count: Count::Pictures,
            expected: None,
        }],
    },
    Layout {
        name: "bow",
        title: "7,505 newsgroup posts as bags of 2,000 words (20 Newsgroups)",
        licence: "public posts, free for research",
        origin: "qwone.com/~jason/20Newsgroups; a local folder",
        folder: "20news.feat, a document a line: `label id:count …`; 20news.vocab, a word a line",
        expectations: &[
            expect("documents", "20news.feat", Count::Lines, 7505),
            expect("words", "20news.vocab", Count::Lines, 2000),
        ],
    },
    Layout {
        name: "point-patterns",
        title: "redwood, cells, towns and pines: classic planar point patterns (Ripley, Strauss, \
                Crick and Lawrence)",
        licence: "published data, free to use with attribution; shipped with R's package spatial",
        origin: "R's package spatial (folder ppdata)",
        folder: "NAME.dat: number of points; title; x from, x to, y from, y to, scale; x y …",
        expectations: &[
            expect("redwood", "redwood.dat", Count::Points, 62),
            expect("cells", "cells.dat", Count::Points, 42),
            expect("towns", "towns.dat", Count::Points, 69),
            expect("pines", "pines.dat", Count::Points, 71),
        ],
    },
];
