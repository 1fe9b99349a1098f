//! CIFAR-10's binary version: records of one label byte and 3 x 32 x 32 pixel bytes, red plane
//! first; `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin` (Krizhevsky 2009).

use super::bytes::Source;
use super::error::{DataError, refuse, refuse_row};
use super::{Dataset, Pixels, Provenance, Split};
use std::io::Read;
use std::path::{Path, PathBuf};

const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const RECORD: usize = 1 + 3 * PLANE;
/// More than any file of the data set by far; a file without an end is refused.
const MOST_RECORDS: usize = 1_000_000;

/// The records of one or several binary files, in order.
///
/// # Errors
/// A file that is not whole records, or a label above 9, with its record.
pub(crate) fn read_cifar10(files: &[PathBuf], pixels: &Pixels) -> Result<Dataset, DataError> {
    let (mut bytes, mut labels) = (Vec::new(), Vec::new());
    let mut provenance = Provenance { name: "cifar-10".to_owned(), ..Provenance::default() };
    for path in files {
        let mut source = Source::open(path)?;
        let mut record = Vec::with_capacity(RECORD);
        for row in 1.. {
            record.clear();
            source
                .by_ref()
                .take(RECORD as u64)
                .read_to_end(&mut record)
                .map_err(|error| refuse_row(path, row, format!("cannot be read: {error}")))?;
            match record.as_slice() {
                [] if row > 1 => break,
                [] => return Err(refuse(path, "holds no record")),
                [label, planes @ ..] if record.len() == RECORD => {
                    if *label > 9 {
                        return Err(refuse_row(path, row, format!("label {label} is above 9")));
                    }
                    labels.push(u32::from(*label));
                    let channels = |pixel| [0, 1, 2].map(|channel| planes[channel * PLANE + pixel]);
                    bytes.extend((0..PLANE).flat_map(channels));
                }
                cut => {
                    let problem = format!("only {} of {RECORD} bytes", cut.len());
                    return Err(refuse_row(path, row, problem));
                }
            }
            if labels.len() > MOST_RECORDS {
                return Err(refuse_row(path, row, format!("more than {MOST_RECORDS} records")));
            }
        }
        provenance.sha256.push(source.end()?);
    }
    pixels
        .dataset(&bytes, labels, 10, [SIDE, SIDE, 3], provenance)
        .map_err(|problem| refuse(files.first().map_or(Path::new("cifar-10"), |p| p), problem))
}

/// The folder `cifar-10-batches-bin`.
///
/// # Errors
/// As [`read_cifar10`]; a missing training file.
pub(crate) fn read_cifar10_folder(folder: &Path, pixels: &Pixels) -> Result<Split, DataError> {
    let train: Vec<PathBuf> =
        (1..=5).map(|batch| folder.join(format!("data_batch_{batch}.bin"))).collect();
    if let Some(missing) = train.iter().find(|path| !path.is_file()) {
        return Err(refuse(missing, "is missing; see `dosimeter data`"));
    }
    let test = folder.join("test_batch.bin");
    Ok(Split {
        train: read_cifar10(&train, pixels)?,
        test: test.is_file().then(|| read_cifar10(&[test], pixels)).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    /// Planes of three values, so that a mistaken order shows.
    fn record(label: u8, red: u8) -> Vec<u8> {
        let mut record = vec![label];
        for channel in 0..3 {
            record.resize(1 + (usize::from(channel) + 1) * PLANE, red + channel);
        }
        record
    }

    #[test]
    fn batches_are_joined_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for batch in 1..=5_u8 {
            let file = folder.path().join(format!("data_batch_{batch}.bin"));
            std::fs::write(file, [record(batch, 10 * batch), record(0, 250)].concat()).unwrap();
        }
        let split = read_cifar10_folder(folder.path(), &Pixels::UNIT).unwrap();
        assert_eq!(split.train.labels, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0]);
        let expected = [20.0_f32, 21.0, 22.0, 20.0].map(|byte| byte / 255.0);
        assert_eq!(split.train.row(2)[..4], expected);
        assert_eq!(split.train.shape, Shape::Image { height: 32, width: 32, channels: 3 });
        assert_eq!(split.train.provenance.sha256.len(), 5);
        assert!(split.test.is_none());
    }

    #[test]
    fn broken_batches_name_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("batch.bin");
        for (bytes, problem) in [
            ([record(1, 0), record(10, 0)].concat(), "row 2: label 10"),
            ([record(1, 0), vec![0; 7]].concat(), "row 2: only 7 of 3073"),
            (vec![], "holds no record"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let found = read_cifar10(std::slice::from_ref(&path), &Pixels::UNIT).unwrap_err();
            assert!(found.to_string().contains(problem), "{found}");
        }
        assert!(read_cifar10_folder(folder.path(), &Pixels::UNIT).is_err());
    }
}
