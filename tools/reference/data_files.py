"""Writes the small files of crates/ebp/tests/files with the libraries that people use, so that our
readers are judged by files that others wrote.

Every array holds the same numbers, exact in 16 bits: value[i, j, k] = i + j / 8 - k / 4.
Every mesh is the same tetrahedron.
"""

import gzip
import struct
import sys
from pathlib import Path

import h5py
import numpy as np
import PIL
import trimesh
from PIL import Image

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

print("numpy", np.__version__, "h5py", h5py.__version__, "trimesh", trimesh.__version__, "pillow", PIL.__version__)
