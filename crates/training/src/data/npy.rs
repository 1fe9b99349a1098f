//! NumPy arrays: records by features (any further dimensions), and their labels in a second file.

use super::bytes::Source;
use super::error::{DataError, refuse, refuse_row};
use super::{Constants, Dataset, Pixels, Preprocessing, Provenance, Shape};
use formats::npy::Header;
use std::path::Path;

/// Numbers decoded at a time.
const CHUNK: u64 = 1 << 16;
/// Numbers in one file that we are ready to hold (16 GiB as f32).
const LARGEST: u64 = 1 << 32;

/// Reads the numbers of a file, each with its row, through `take`.
fn read(
    path: &Path,
    mut take: impl FnMut(u64, f64) -> Result<(), String>,
) -> Result<(Header, String), DataError> {
    let mut source = Source::open(path)?;
    let header = Header::read(&mut source).map_err(|problem| refuse(path, problem))?;
    let shape = &header.shape;
    let count = header
        .count()
        .filter(|count| *count <= LARGEST)
        .ok_or_else(|| refuse(path, format!("the shape {shape:?} is too large")))?;
    let bytes = count * header.width() as u64;
    if let Some(there) = source
        .length
        .map(|length| length.saturating_sub(header.bytes))
        .filter(|there| *there != bytes)
    {
        let problem = format!("the header promises {bytes} bytes but {there} follow it");
        return Err(refuse(path, problem));
    }
    if count == 0 || shape.is_empty() {
        return Err(refuse(path, "holds no record"));
    }
    if header.fortran_order && shape.iter().filter(|size| **size > 1).count() > 1 {
        let hint = "is in Fortran order; save it with `numpy.ascontiguousarray`";
        return Err(refuse(path, hint));
    }
    let width = (count / shape[0]).max(1);
    let (mut place, mut problem) = (0_u64, None);
    while place < count {
        let numbers = CHUNK.min(count - place);
        let bytes =
            source.exactly(numbers * header.width() as u64, "the data that its header promises")?;
        header.decode(&bytes, |number| {
            if problem.is_none()
                && let Err(found) = take(place / width, number)
            {
                problem = Some((place / width + 1, found));
            }
            place += 1;
        });
        if let Some((row, problem)) = problem {
            return Err(refuse_row(path, row, problem));
        }
    }
    let hash = source.end()?;
    Ok((header, hash))
}

/// Records and labels. Shape (n, d) is flat; (n, h, w) and (n, h, w, c) are images. Bytes are
/// taken as pixels and go through `pixels`; other numbers are taken as they are.
///
/// # Errors
/// What is wrong with either file, with the row where there is one.
pub fn read_npy(
    features: &Path,
    labels: &Path,
    classes: usize,
    pixels: &Pixels,
) -> Result<Dataset, DataError> {
    let mut numbers: Vec<f32> = Vec::new();
    let (header, features_hash) = read(features, |_, number| {
        let value = number as f32;
        if !value.is_finite() {
            return Err(format!("{number:?} is not a finite number"));
        }
        numbers.push(value);
        Ok(())
    })?;
    let mut classes_found: Vec<u32> = Vec::new();
    let (label_header, labels_hash) = read(labels, |_, number| {
        if number.fract() != 0.0 || !(number >= 0.0 && number < classes as f64) {
            return Err(format!("label {number} is not an integer below {classes}"));
        }
        classes_found.push(number as u32);
        Ok(())
    })?;
    if label_header.shape.iter().filter(|size| **size > 1).count() > 1 {
        return Err(refuse(labels, format!("labels of shape {:?}", label_header.shape)));
    }
    if classes_found.len() as u64 != header.shape[0] {
        let problem = format!("{} labels for {} records", classes_found.len(), header.shape[0]);
        return Err(refuse(labels, problem));
    }
    let mut provenance = Provenance {
        name: features.display().to_string(),
        sha256: vec![features_hash, labels_hash],
        ..Provenance::default()
    };
    let sizes: Vec<usize> = header.shape[1..].iter().map(|&size| size as usize).collect();
    let shape = match sizes.as_slice() {
        [height, width] => Shape::Image { height: *height, width: *width, channels: 1 },
        [height, width, channels] => {
            Shape::Image { height: *height, width: *width, channels: *channels }
        }
        other => Shape::Flat(other.iter().product()),
    };
    if let (Shape::Image { height, width, channels }, 1) = (shape, header.width()) {
        let bytes: Vec<u8> = numbers.iter().map(|&number| number as u8).collect();
        return pixels
            .dataset(&bytes, classes_found, classes, [height, width, channels], provenance)
            .map_err(|problem| refuse(features, problem));
    }
    if *pixels != Pixels::UNIT {
        let constants = match shape {
            Shape::Image { channels, .. } => pixels.for_channels(channels),
            Shape::Flat(length) => pixels.for_channels(length),
        };
        let constants = constants.map_err(|problem| refuse(features, problem))?;
        for (number, (mean, deviation)) in numbers.iter_mut().zip(constants.iter().cycle()) {
            *number = (*number - mean) / deviation;
        }
        let step = "standardised by the stated means and deviations".to_owned();
        provenance.preprocessing.push(Preprocessing { step, constants: Constants::Public });
    }
    Ok(Dataset {
        features: numbers,
        labels: classes_found,
        classes,
        shape,
        columns: Vec::new(),
        provenance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        formats::npy::file(&text, data)
    }

    fn read_pair(features: &[u8], labels: &[u8], pixels: &Pixels) -> Result<Dataset, String> {
        let folder = tempfile::tempdir().unwrap();
        let (x, y) = (folder.path().join("x.npy"), folder.path().join("y.npy"));
        std::fs::write(&x, features).unwrap();
        std::fs::write(&y, labels).unwrap();
        super::read_npy(&x, &y, 3, pixels).map_err(|error| error.to_string())
    }

    fn floats(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn flat_records_and_images() {
        let x = file("<f4", "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        let y = file("|i1", "(2,)", &[2, 0]);
        let pixels = Pixels { mean: vec![1.0, 2.0, 3.0], deviation: vec![2.0] };
        let data = read_pair(&x, &y, &pixels).unwrap();
        assert_eq!(data.features, [0.0, 0.0, 0.0, 1.5, 1.5, 1.5]);
        assert_eq!((data.labels, data.shape), (vec![2, 0], Shape::Flat(3)));
        let x = file("|u1", "(2, 1, 2, 1)", &[0, 51, 102, 255]);
        let data = read_pair(&x, &y, &Pixels::UNIT).unwrap();
        assert_eq!(data.features, [0.0, 0.2, 0.4, 1.0]);
        assert_eq!(data.shape, Shape::Image { height: 1, width: 2, channels: 1 });
    }

    #[test]
    fn broken_arrays_name_the_row() {
        let x = file("<f4", "(2, 2)", &floats(&[1.0; 4]));
        let y = file("|u1", "(2,)", &[0, 1]);
        let infinite = file("<f4", "(2, 2)", &floats(&[1.0, 1.0, 1.0, f32::INFINITY]));
        let wide = file("<f8", "(1, 1)", &1e300_f64.to_le_bytes());
        for (x, y, problem) in [
            (infinite, y.clone(), "x.npy, row 2: inf is not a finite number"),
            (wide, y.clone(), "row 1: 1e300 is not a finite number"),
            (x.clone(), file("|u1", "(2,)", &[0, 3]), "y.npy, row 2: label 3"),
            (x.clone(), file("<f4", "(2,)", &floats(&[0.5, 0.0])), "row 1: label 0.5"),
            (x.clone(), file("|u1", "(3,)", &[0, 1, 2]), "3 labels for 2 records"),
            (x.clone(), file("|u1", "(2, 2)", &[0; 4]), "labels of shape"),
            (file("<f4", "(9, 9)", &[0; 8]), y.clone(), "promises 324 bytes but 8 follow"),
            (file("<f4", "(99999999999, 99999999999)", &[]), y.clone(), "too large"),
            (file("<f4", "(0, 2)", &[]), y.clone(), "no record"),
        ] {
            let found = read_pair(&x, &y, &Pixels::UNIT).unwrap_err();
            assert!(found.contains(problem), "{problem}: {found}");
        }
    }
}
