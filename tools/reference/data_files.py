"""Writes the small files of crates/ebp/tests/files with the libraries that people use, so that our
readers are judged by files that others wrote.

Every array holds the same numbers, exact in 16 bits: value[i, j, k] = i + j / 8 - k / 4.
Every mesh is the same tetrahedron.
"""

import gzip
import struct
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import gensim
import h5py
import numpy as np
import PIL
import pypcd4
import sklearn
import trimesh
from gensim.corpora import Dictionary, UciCorpus
from PIL import Image
from sklearn.datasets import dump_svmlight_file

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

i, j, k = np.meshgrid(np.arange(2), np.arange(5), np.arange(3), indexing="ij")
values = i + j / 8 - k / 4

np.save(folder / "clouds_f16.npy", values.astype("<f2"))
np.save(folder / "clouds_f32_fortran.npy", np.asfortranarray(values.astype("<f4")))
np.save(folder / "clouds_f64_big.npy", values.astype(">f8"))
np.save(folder / "cloud_f64_fortran.npy", np.asfortranarray(values[1]))
np.save(folder / "labels_i64.npy", np.array([3, 7]))
with open(folder / "clouds_version2.npy", "wb") as file:
    np.lib.format.write_array(file, values.astype("<f4"), version=(2, 0))
np.savez(folder / "clouds.npz", first=values[0].astype("<f4"), label=np.array([3, 7]), second=values[1, :2])
np.savez_compressed(folder / "clouds_compressed.npz", data=values.astype("<f4"))

# ModelNet40's files (modelnet40_ply_hdf5_2048): chunked and compressed data, one label a row.
for name, libver in [("modelnet_classic.h5", "earliest"), ("modelnet_latest.h5", "latest")]:
    with h5py.File(folder / name, "w", libver=libver) as file:
        file.create_dataset("data", data=values.astype("<f4"), compression="gzip")
        file.create_dataset("label", data=np.array([[3], [7]], dtype="u1"), compression="gzip")
with h5py.File(folder / "plain_f64.h5", "w") as file:
    file.create_dataset("points", data=values[1])

vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0.5]]
faces = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
mesh = trimesh.Trimesh(vertices=vertices, faces=faces, process=False)
(folder / "tetrahedron_ascii.ply").write_bytes(mesh.export(file_type="ply", encoding="ascii"))
(folder / "tetrahedron_binary.ply").write_bytes(mesh.export(file_type="ply", encoding="binary"))
(folder / "tetrahedron.obj").write_text(mesh.export(file_type="obj"))
(folder / "tetrahedron.off").write_text(mesh.export(file_type="off"))
(folder / "tetrahedron.xyz").write_text(trimesh.PointCloud(vertices).export(file_type="xyz"))

# A picture whose pixels tell their place: red rises to the right, green downwards.
rows, columns = np.mgrid[0:6, 0:8]
picture = np.stack([columns * 32, rows * 40, np.full((6, 8), 128)], axis=2).astype("u1")
Image.fromarray(picture).save(folder / "picture.png")
Image.fromarray(picture).save(folder / "picture.jpg", quality=95, subsampling=0)
Image.fromarray(picture[:, :, 0]).save(folder / "grey.png")

# The IDX format of MNIST, by Python's struct and gzip.
images = struct.pack(">IIII", 0x803, 2, 2, 3) + bytes(range(12))
with gzip.GzipFile(folder / "images-idx3-ubyte.gz", "wb", mtime=0) as file:
    file.write(images)

# PCD by pypcd4, whose packing is liblzf: 200 points with a colour each, so that LZF finds repetitions
# of all lengths; point i is (i / 8, i % 4, -1 / 2).
number = np.arange(200)
fields = [(number * 7 % 256).astype("u1"), (number / 8).astype("<f4"), (number % 4).astype("<f8"), np.full(200, -0.5, "<f4")]
scan = pypcd4.PointCloud.from_points(fields, ("intensity", "x", "y", "z"), (np.uint8, np.float32, np.float64, np.float32))
for encoding in [pypcd4.Encoding.ASCII, pypcd4.Encoding.BINARY, pypcd4.Encoding.BINARY_COMPRESSED]:
    scan.save(folder / f"scan_{encoding.value}.pcd", encoding=encoding)

# Bags of words: scikit-learn counts from 0 unless told otherwise, gensim writes UCI's docword.
documents = np.array([[2, 0, 0, 1], [0, 0, 0, 0], [0, 5, 0, 3]])
for name, zero_based in [("words_from_zero.svmlight", True), ("words_from_one.svmlight", False)]:
    dump_svmlight_file(documents, [1, -1, 0.5], str(folder / name), zero_based=zero_based, comment="three documents")
texts = [["sea", "sea", "sun"], ["wind", "sea"], ["sun"] * 4]
dictionary = Dictionary(texts)
with tempfile.TemporaryDirectory() as scratch:
    UciCorpus.serialize(f"{scratch}/docword", [dictionary.doc2bow(text) for text in texts], id2word=dictionary)
    (folder / "docword.gensim.txt").write_bytes(Path(f"{scratch}/docword").read_bytes())
    (folder / "vocab.gensim.txt").write_bytes(Path(f"{scratch}/docword.vocab").read_bytes())

# A planar pattern as R's package `spatial` stores them: no zero before the point, blanks at will.
# Point i is (i, 10 - i) / 10 of a window [0, 1.2] x [0, 1].
lines = ["7", "STAIRS", " 0 12 0 10  10"] + [f" {i}.0   {10 - i}" if i % 2 else f"  {i}\t{10 - i}." for i in range(7)]
(folder / "pattern.dat").write_text("\n".join(lines) + "\n")

print("pypcd4", version("pypcd4"), "scikit-learn", sklearn.__version__, "gensim", gensim.__version__)
print("numpy", np.__version__, "h5py", h5py.__version__, "trimesh", trimesh.__version__, "pillow", PIL.__version__)
