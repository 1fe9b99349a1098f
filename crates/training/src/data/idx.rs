//! The IDX format of MNIST and Fashion-MNIST: two zero bytes, the type (8 = unsigned byte), the
//! number of dimensions, the sizes as big-endian 32-bit numbers, the bytes. Plain or gzipped.

use super::bytes::{Source, either};
use super::error::{DataError, refuse, refuse_row};
use super::{Dataset, Pixels, Provenance, Split};
use std::path::Path;

/// Bytes in one file that we are ready to hold; the full MNIST has 47 MB.
const LARGEST: u64 = 1 << 32;

/// What an IDX file holds: its sizes, its bytes, and the SHA-256 of the file.
struct Array {
    sizes: Vec<u64>,
    bytes: Vec<u8>,
    sha256: String,
}

fn read(path: &Path, dimensions: u8) -> Result<Array, DataError> {
    let mut source = Source::open(path)?;
    let start = source.exactly(4, "the IDX header")?;
    match start.as_slice() {
        [0, 0, 8, found] if *found == dimensions => {}
        [0, 0, 8, found] => {
            let problem = format!("has {found} dimensions where {dimensions} were expected");
            return Err(refuse(path, problem));
        }
        [0, 0, kind, _] => {
            return Err(refuse(path, format!("holds IDX type {kind:#04x}, not unsigned bytes")));
        }
        _ => return Err(refuse(path, "is not an IDX file (its first bytes are wrong)")),
    }
    let sizes = source.exactly(4 * u64::from(dimensions), "the IDX header")?;
    let sizes: Vec<u64> =
        sizes.as_chunks::<4>().0.iter().map(|&size| u32::from_be_bytes(size).into()).collect();
    let count = sizes
        .iter()
        .try_fold(1_u64, |product, &size| product.checked_mul(size))
        .filter(|count| *count <= LARGEST)
        .ok_or_else(|| refuse(path, format!("promises {sizes:?} bytes, more than {LARGEST}")))?;
    if count == 0 {
        return Err(refuse(path, "holds no record"));
    }
    let bytes = source.exactly(count, "the data that its header promises")?;
    Ok(Array { sizes, bytes, sha256: source.end()? })
}

/// Images and their labels, which must be below `classes`.
///
/// # Errors
/// What is wrong with either file, with the record where there is one.
pub(crate) fn read_idx(
    images: &Path,
    labels: &Path,
    classes: usize,
    pixels: &Pixels,
) -> Result<Dataset, DataError> {
    let image_array = read(images, 3)?;
    let label_array = read(labels, 1)?;
    let sizes = &image_array.sizes;
    if *sizes != [label_array.sizes[0], sizes[1], sizes[2]] {
        let problem = format!("{} labels for {} images", label_array.sizes[0], sizes[0]);
        return Err(refuse(labels, problem));
    }
    for (row, &label) in (1..).zip(&label_array.bytes) {
        if usize::from(label) >= classes {
            return Err(refuse_row(labels, row, format!("label {label} is not below {classes}")));
        }
    }
    let shape = [sizes[1] as usize, sizes[2] as usize, 1];
    let provenance = Provenance {
        name: images.display().to_string(),
        sha256: vec![image_array.sha256, label_array.sha256],
        ..Provenance::default()
    };
    let numbers = label_array.bytes.into_iter().map(u32::from).collect();
    pixels
        .dataset(&image_array.bytes, numbers, classes, shape, provenance)
        .map_err(|problem| refuse(images, problem))
}

/// The folder with the four files under their official names, each plain or with `.gz`.
///
/// # Errors
/// As [`read_idx`]; a missing training file.
pub(crate) fn read_idx_folder(
    folder: &Path,
    classes: usize,
    pixels: &Pixels,
) -> Result<Split, DataError> {
    let part = |prefix: &str| {
        let images = either(folder, &format!("{prefix}-images-idx3-ubyte"))?;
        let labels = either(folder, &format!("{prefix}-labels-idx1-ubyte"))?;
        Some(read_idx(&images, &labels, classes, pixels))
    };
    let train = part("train").ok_or_else(|| {
        let files = "train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz)";
        refuse(folder, format!("does not hold {files}; see `dosimeter data`"))
    })??;
    Ok(Split { train, test: part("t10k").transpose()? })
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;
    use std::io::Write;

    fn images(sizes: [u32; 3], bytes: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, 8, 3];
        sizes.iter().for_each(|size| file.extend(size.to_be_bytes()));
        file.extend(bytes);
        file
    }

    fn labels(labels: &[u8]) -> Vec<u8> {
        let mut file = vec![0, 0, 8, 1];
        file.extend((labels.len() as u32).to_be_bytes());
        file.extend(labels);
        file
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn plain_and_gzipped_folders_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..2 * 6).map(|i| i * 20).collect();
        let image_file = images([2, 2, 3], &bytes);
        std::fs::write(folder.path().join("train-images-idx3-ubyte"), &image_file).unwrap();
        std::fs::write(folder.path().join("train-labels-idx1-ubyte.gz"), gzip(&labels(&[3, 1])))
            .unwrap();
        let split = read_idx_folder(folder.path(), 10, &Pixels::UNIT).unwrap();
        assert!(split.test.is_none());
        assert_eq!(split.train.shape, Shape::Image { height: 2, width: 3, channels: 1 });
        assert_eq!(split.train.labels, [3, 1]);
        assert_eq!(split.train.row(1)[0], 120.0 / 255.0);
        std::fs::write(folder.path().join("train-images-idx3-ubyte"), gzip(&image_file)).unwrap();
        let again = read_idx_folder(folder.path(), 10, &Pixels::UNIT).unwrap();
        assert_eq!(split.train.features, again.train.features);
    }

    #[test]
    fn hostile_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a"), folder.path().join("b"));
        let good = images([2, 2, 2], &[0; 8]);
        for (image_file, label_file, problem) in [
            (images([u32::MAX; 3], &[0; 8]), labels(&[0, 1]), "more than"),
            (images([2_000_000, 28, 28], &[0; 8]), labels(&[0, 1]), "ends after 8 of"),
            (images([2, 2, 2], &[0; 9]), labels(&[0, 1]), "longer than its header"),
            (images([0, 2, 2], &[]), labels(&[0, 1]), "no record"),
            (vec![0, 0, 13, 3, 0, 0], labels(&[0, 1]), "not unsigned bytes"),
            (labels(&[0, 1]), labels(&[0, 1]), "1 dimensions"),
            (b"PK".to_vec(), labels(&[0, 1]), "ends after 2"),
            (good.clone(), labels(&[0, 1, 2]), "3 labels for 2 images"),
            (good.clone(), labels(&[0, 10]), "row 2: label 10 is not below 10"),
            (gzip(&good)[..20].to_vec(), labels(&[0, 1]), "cannot be read"),
        ] {
            std::fs::write(&first, image_file).unwrap();
            std::fs::write(&second, label_file).unwrap();
            let found = read_idx(&first, &second, 10, &Pixels::UNIT).unwrap_err().to_string();
            assert!(found.contains(problem), "{problem}: {found}");
        }
    }
}
