//! Image data sets, told by what is in their folder.

use crate::PaperError;
use std::path::Path;
use training::data::{DataSource, Split};

/// CIFAR-10's published means and deviations, for images of it in another form.
const CIFAR10: ([f32; 3], [f32; 3]) = ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]);

/// A data set and what to call it.
pub(super) struct Images {
    pub(super) name: String,
    pub(super) split: Split,
}

impl Images {
    /// Keeps this many records to train on and as many to make canaries of, evenly spread.
    pub(super) fn keep(&mut self, records: usize) {
        for part in [Some(&mut self.split.train), self.split.test.as_mut()].into_iter().flatten() {
            *part = part.select(&attacks::spread(part.len(), records));
        }
    }
}

/// Folders that are looked for; of the forms of one data set the first.
const KNOWN: [&[&str]; 2] =
    [&["fashion-mnist"], &["cifar-10-batches-bin", "cifar-10", "cifar10-jpeg"]];

/// All data sets in a folder: those in folders of their name, or the folder itself.
pub(super) fn read_all(folder: Option<&Path>) -> Result<Vec<Images>, PaperError> {
    let folder = folder.ok_or(PaperError::NeedsData)?;
    let inside = KNOWN
        .iter()
        .filter_map(|forms| forms.iter().map(|form| folder.join(form)).find(|path| path.is_dir()));
    let mut found: Vec<_> = inside.collect();
    if found.is_empty() {
        found.push(folder.to_owned());
    }
    found.iter().map(|path| read(path)).collect()
}

/// Reads a folder: CIFAR-10's binary files, IDX files (Fashion-MNIST unless the folder is called
/// `mnist`), or `train` and `test` with a folder of images for each class.
fn read(folder: &Path) -> Result<Images, PaperError> {
    if !folder.is_dir() {
        return Err(PaperError::NoFolder(folder.to_owned()));
    }
    let holds =
        |name: &str| folder.join(name).exists() || folder.join(format!("{name}.gz")).exists();
    let called = folder.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let called = called.unwrap_or_default();
    let path = Some(folder.to_owned());
    let known = if holds("data_batch_1.bin") {
        Some("cifar-10")
    } else if holds("train-images-idx3-ubyte") {
        Some(if called == "mnist" { "mnist" } else { "fashion-mnist" })
    } else {
        None
    };
    let source = match known {
        Some(name) => DataSource { name: Some(name.to_owned()), path, ..DataSource::default() },
        None => DataSource {
            path,
            mean: CIFAR10.0.to_vec(),
            deviation: CIFAR10.1.to_vec(),
            ..DataSource::default()
        },
    };
    let mut split = source.load(Path::new(""))?;
    if known.is_none() {
        // Where the folder lies does not matter for what was trained on: trainings go on elsewhere.
        split.train.provenance.name = format!("{called}/train");
        if let Some(test) = &mut split.test {
            test.provenance.name = format!("{called}/test");
        }
    }
    let name = known.map_or(called, str::to_owned);
    Ok(Images { name, split })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pixel, dark grey.
    const PICTURE: &[u8] =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
        \0\0\0\x0cIDATx\x9cc`gg\x07\0\0.\0\x16\x92yy\x8b\0\0\0\0IEND\xaeB`\x82";

    /// What was trained on is what the images are and what their folder is called, wherever it is.
    #[test]
    fn a_folder_of_images_may_move() {
        let root = tempfile::tempdir().unwrap();
        let places = [root.path().join("here"), root.path().join("far/away")];
        for place in &places {
            for class in ["train/cat", "train/dog", "test/cat", "test/dog"] {
                let folder = place.join("cifar10-jpeg").join(class);
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(folder.join("0.png"), PICTURE).unwrap();
            }
        }
        let [here, away] =
            places.map(|place| read_all(Some(&place)).unwrap().remove(0).split.train.provenance);
        assert_eq!(here.name, "cifar10-jpeg/train");
        assert_eq!(here, away);
    }
}
