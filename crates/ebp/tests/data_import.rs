//! Import from every layout, on files made in it, and the counts of known data sets.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use ebp::data::Split;
use ebp::data::cache::{Cache, Kind};
use ebp::data::cloud::{Cloud, CloudFormat, cloud_bytes};
use ebp::data::image::ImageOptions;
use ebp::data::import::{ImportOptions, SourceKind, detect, import};
use ebp::data::layout::{LAYOUTS, Layout};
use ebp::data::npy::{Array, Precision, npy_bytes};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn put(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
    fs::write(path, bytes).expect("a new file");
}

fn cloud(number: u8, num_points: usize) -> Cloud {
    Cloud {
        dim: 3,
        points: (0..3 * num_points).map(|i| f32::from(number) + i as f32 / 64.0).collect(),
    }
}

fn npy(number: u8, num_points: usize) -> Vec<u8> {
    cloud_bytes(&cloud(number, num_points), CloudFormat::Npy).expect("a cloud")
}

fn imported(folder: &Path, options: &ImportOptions) -> Cache {
    let out = tempfile::tempdir().expect("a folder");
    import(folder, &out.path().join("a.ebp"), options).expect("a cache")
}

fn class(cache: &Cache, index: usize) -> Option<&str> {
    cache.label(index).map(|label| cache.meta().classes[label as usize].as_str())
}

#[test]
fn shapenets_folders_are_classes_and_splits() {
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in
        ["02691156/train/a", "02691156/val/b", "03001627/test/c", "99999999/train/d"]
            .iter()
            .enumerate()
    {
        put(folder.path(), &format!("{name}.npy"), npy(u8::try_from(number).unwrap(), 15));
    }
    let cache = imported(folder.path(), &ImportOptions::default());
    assert_eq!(
        cache.names(),
        ["02691156/train/a", "02691156/val/b", "03001627/test/c", "99999999/train/d"]
    );
    let classes: Vec<_> = (0..4).map(|index| class(&cache, index)).collect();
    assert_eq!(classes, [Some("airplane"), Some("airplane"), Some("chair"), Some("99999999")]);
    let splits: Vec<_> = (0..4).map(|index| cache.split(index)).collect();
    assert_eq!(splits, [Split::Train, Split::Validation, Split::Test, Split::Train]);
    assert_eq!(cache.set(2), cloud(2, 15).points);
}

#[test]
fn latent_points_folders_of_ply_are_classes() {
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in ["02958343/a.ply", "02958343/b.ply"].iter().enumerate() {
        put(
            folder.path(),
            name,
            cloud_bytes(&cloud(u8::try_from(number).unwrap(), 9), CloudFormat::PlyLittle).unwrap(),
        );
    }
    let options = ImportOptions { test: 0.5, ..ImportOptions::default() };
    let cache = imported(folder.path(), &options);
    assert_eq!((class(&cache, 1), cache.members(Split::Test).len()), (Some("car"), 1));
    assert_eq!(cache.set(1), cloud(1, 9).points);
}

#[test]
fn modelnets_hdf5_has_labels_and_names() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "ply_data_train0.h5", fs::read(file("modelnet_classic.h5")).unwrap());
    put(folder.path(), "ply_data_test0.h5", fs::read(file("modelnet_latest.h5")).unwrap());
    put(folder.path(), "shape_names.txt", "a\nb\nc\nbed\ne\nf\ng\nchair\n");
    put(folder.path(), "train_files.txt", "data/modelnet40_ply_hdf5_2048/ply_data_train0.h5\n");
    let cache = imported(folder.path(), &ImportOptions::default());
    assert_eq!(cache.names()[0], "ply_data_test0/0");
    let classes: Vec<_> = (0..4).map(|index| class(&cache, index).unwrap()).collect();
    assert_eq!(classes, ["bed", "chair", "bed", "chair"]);
    assert_eq!((cache.split(0), cache.split(2)), (Split::Test, Split::Train));
}

#[test]
fn modelnets_meshes_are_sampled() {
    let folder = tempfile::tempdir().unwrap();
    let square = "OFF4 1 0\n0 0 0\n2 0 0\n2 3 0\n0 3 0\n4 0 1 2 3\n";
    put(folder.path(), "chair/train/chair_0001.off", square);
    put(folder.path(), "chair/test/chair_0002.off", square);
    let options = ImportOptions { num_points: 500, ..ImportOptions::default() };
    let cache = imported(folder.path(), &options);
    assert_eq!(
        (class(&cache, 0), cache.split(0), cache.offsets().size(0)),
        (Some("chair"), Split::Test, 500)
    );
    assert!(
        cache
            .set(0)
            .chunks_exact(3)
            .all(|p| (0.0..=2.0).contains(&p[0]) && (0.0..=3.0).contains(&p[1]) && p[2] == 0.0)
    );
    assert_ne!(cache.set(0), cache.set(1), "each mesh has its own points");
    let again = imported(folder.path(), &options);
    assert_eq!(again.elements(), cache.elements(), "and always the same ones");
}

#[test]
fn one_array_a_class_and_one_with_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let array = |count: usize| {
        let values = (0..count * 6).map(|i| i as f32).collect();
        npy_bytes(&Array::new(vec![count, 2, 3], values).unwrap(), Precision::Half).unwrap()
    };
    put(folder.path(), "many/bed.npy", array(2));
    put(folder.path(), "many/sofa.npy", array(3));
    let cache = imported(&folder.path().join("many"), &ImportOptions::default());
    assert_eq!((cache.len(), class(&cache, 1), class(&cache, 2)), (5, Some("bed"), Some("sofa")));
    put(folder.path(), "one/points.npy", array(2));
    put(folder.path(), "one/index.csv", "row,coarse_class,id\n0,plane,m1\n1,dog,m2\n");
    let cache = imported(&folder.path().join("one"), &ImportOptions::default());
    assert_eq!((class(&cache, 0), class(&cache, 1)), (Some("plane"), Some("dog")));
}

#[test]
fn mnist_and_pictures_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    let images = |count: u8| {
        [&[0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 2, 0, 0, 0, 2][..], &vec![9; 4 * count as usize]]
            .concat()
    };
    let labels = |count: u8| [&[0, 0, 8, 1, 0, 0, 0, count][..], &vec![7; count as usize]].concat();
    put(folder.path(), "mnist/train-images-idx3-ubyte", images(3));
    put(folder.path(), "mnist/train-labels-idx1-ubyte", labels(3));
    put(folder.path(), "mnist/t10k-images-idx3-ubyte", images(1));
    put(folder.path(), "mnist/t10k-labels-idx1-ubyte", labels(1));
    let cache = imported(&folder.path().join("mnist"), &ImportOptions::default());
    assert_eq!((cache.meta().kind, cache.len()), (Kind::Images, 4));
    assert_eq!(
        (class(&cache, 0), cache.split(3), cache.picture(3)),
        (Some("7"), Split::Test, &[9; 4][..])
    );

    let mut zip = zip::ZipWriter::new(fs::File::create(folder.path().join("faces.zip")).unwrap());
    for name in [
        "img_align_celeba/000002.jpg",
        "img_align_celeba/000001.png",
        "img_align_celeba/readme.txt",
    ] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        let source = if name.ends_with("jpg") { "picture.jpg" } else { "picture.png" };
        zip.write_all(&fs::read(file(source)).unwrap()).unwrap();
    }
    zip.finish().unwrap();
    let options = ImportOptions { image: ImageOptions::CELEBA_32, ..ImportOptions::default() };
    let cache = imported(&folder.path().join("faces.zip"), &options);
    assert_eq!(cache.names(), ["img_align_celeba/000001.png", "img_align_celeba/000002.jpg"]);
    assert_eq!((cache.meta().picture_size, cache.meta().dim), (Some([32, 32]), 3));
    assert_eq!(class(&cache, 0), None, "one folder around everything is no class");
}

#[test]
fn words_patterns_and_tables_are_imported() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a.feat", "2 7:1 3:4\n5 1:2\n");
    let cache = imported(&folder.path().join("a.feat"), &ImportOptions::default());
    assert_eq!(
        (cache.meta().kind, cache.set(0), class(&cache, 1)),
        (Kind::Words, &[6.0, 1.0, 2.0, 4.0][..], Some("5"))
    );
    put(folder.path(), "docword.x.txt", "1\n3\n1\n1 3 2\n");
    assert_eq!(
        imported(&folder.path().join("docword.x.txt"), &ImportOptions::default()).set(0),
        [2.0, 2.0]
    );
    put(folder.path(), "p/cells.dat", "2\nCELLS\n0 1 0 1 1\n.5 .25\n.75 1\n");
    let cache = imported(&folder.path().join("p"), &ImportOptions::default());
    assert_eq!((cache.names()[0].as_str(), cache.set(0)), ("CELLS", &[0.5, 0.25, 0.75, 1.0][..]));
    put(folder.path(), "t.csv", "t,x\n1,2\n3,4\n");
    let cache = imported(&folder.path().join("t.csv"), &ImportOptions::default());
    assert_eq!((cache.meta().value_dim, cache.set(0)), (1, &[2.0, 1.0, 4.0, 3.0][..]));
}

#[test]
fn what_cannot_be_imported_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.ebp");
    let message =
        |source: &Path| import(source, &out, &ImportOptions::default()).unwrap_err().to_string();
    assert!(message(&folder.path().join("nothing")).contains("cannot read"));
    put(folder.path(), "e/readme.md", "x");
    assert!(message(&folder.path().join("e")).contains("none in the folder"));
    put(folder.path(), "f/a.npy", npy(1, 4));
    put(folder.path(), "f/b.npy", "broken");
    let error = message(&folder.path().join("f"));
    assert!(error.contains("b.npy, byte 0: expected"), "{error}");
    assert!(!out.exists() && !folder.path().join("a.ebp.part").exists());
    let mut points = cloud(1, 4);
    points.points[5] = f32::NAN;
    put(folder.path(), "n/a.npy", cloud_bytes(&points, CloudFormat::Npy).unwrap());
    assert!(message(&folder.path().join("n")).contains("element 1 of `a`` must be finite"));
    let options = ImportOptions { drops_non_finite: true, ..ImportOptions::default() };
    let cache = import(&folder.path().join("n"), &out, &options).unwrap();
    assert_eq!(cache.offsets().size(0), 3);
    assert_eq!(detect(&file("picture.png")).unwrap(), SourceKind::Images);
}

#[test]
fn copies_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::named("modelnet10-npy").unwrap();
    let counted = layout.check(folder.path()).unwrap();
    assert!(counted.iter().all(|counted| !counted.is_right()));
    let values = vec![0.0_f32; 887 * 2 * 3];
    let array = Array::new(vec![887, 2, 3], values).unwrap();
    put(folder.path(), "chair.npy", npy_bytes(&array, Precision::Half).unwrap());
    let counted = layout.check(folder.path()).unwrap();
    assert_eq!(counted[1].found, Some(887));
    assert!(counted[2].is_right() && !counted[1].is_right());
    assert!(Layout::named("imagenet").unwrap_err().to_string().contains("shapenet-pc15k"));
    for layout in LAYOUTS {
        assert!(!layout.licence.is_empty() && !layout.expectations.is_empty());
        // Each can be asked about a folder that holds nothing.
        layout.check(&folder.path().join("nowhere")).unwrap();
    }
}
