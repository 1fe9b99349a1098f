//! The data sets that are known by name: where they are to be had, under which licence, and the
//! SHA-256 of their files. Nothing is ever fetched; files are verified when asked.
//!
//! The checksums are of the files as their authors distribute them; of IDX files also unpacked.

use super::bytes::{digest, unpacked_digest};
use std::path::Path;

/// A file of a known data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownFile {
    pub name: &'static str,
    pub sha256: &'static str,
}

/// A data set known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDataset {
    /// As in `[data] name = "…"`.
    pub name: &'static str,
    pub title: &'static str,
    /// Training and test records.
    pub records: [usize; 2],
    pub features: usize,
    pub classes: usize,
    pub licence: &'static str,
    /// Where its authors or their successors offer it.
    pub source: &'static str,
    /// What to cite.
    pub citation: &'static str,
    /// Where its files stand when it is used; nothing for what is built in.
    pub layout: &'static str,
    pub files: &'static [KnownFile],
}

const fn file(name: &'static str, sha256: &'static str) -> KnownFile {
    KnownFile { name, sha256 }
}

/// Every data set known by name.
pub const KNOWN: [KnownDataset; 5] = [
    KnownDataset {
        name: "adult",
        title: "UCI Adult (Census Income)",
        records: [32_561, 16_281],
        features: 108,
        classes: 2,
        licence: "CC BY 4.0",
        source: "https://doi.org/10.24432/C5XW20",
        citation: "B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996",
        layout: "",
        files: &[
            file("adult.data", super::adult::SHA256[1]),
            file("adult.test", super::adult::SHA256[2]),
        ],
    },
    KnownDataset {
        name: "mnist",
        title: "MNIST handwritten digits",
        records: [60_000, 10_000],
        features: 784,
        classes: 10,
        licence: "CC BY-SA 3.0, as commonly stated; the authors' page states none",
        source: "https://ossci-datasets.s3.amazonaws.com/mnist/",
        citation: "Y. LeCun, C. Cortes and C. Burges, The MNIST database, 1998",
        layout: "a folder with the four IDX files, gzipped or not",
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
            file(
                "train-images-idx3-ubyte",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            file(
                "train-labels-idx1-ubyte",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            file(
                "t10k-images-idx3-ubyte",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            file(
                "t10k-labels-idx1-ubyte",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ],
    },
    KnownDataset {
        name: "fashion-mnist",
        title: "Fashion-MNIST",
        records: [60_000, 10_000],
        features: 784,
        classes: 10,
        licence: "MIT",
        source: "https://github.com/zalandoresearch/fashion-mnist",
        citation: "H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, arXiv:1708.07747, 2017",
        layout: "a folder with the four IDX files, gzipped or not",
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
            file(
                "train-images-idx3-ubyte",
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            ),
            file(
                "train-labels-idx1-ubyte",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            ),
            file(
                "t10k-images-idx3-ubyte",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            ),
            file(
                "t10k-labels-idx1-ubyte",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
        ],
    },
    KnownDataset {
        name: "cifar-10",
        title: "CIFAR-10, binary version",
        records: [50_000, 10_000],
        features: 3_072,
        classes: 10,
        licence: "none stated; the authors ask for a citation",
        source: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        citation: "A. Krizhevsky, Learning multiple layers of features from tiny images, 2009",
        layout: "the folder cifar-10-batches-bin of the unpacked archive",
        files: &[
            file(
                "cifar-10-binary.tar.gz",
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
            file(
                "data_batch_1.bin",
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
            ),
            file(
                "data_batch_2.bin",
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
            ),
            file(
                "data_batch_3.bin",
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
            ),
            file(
                "data_batch_4.bin",
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
            ),
            file(
                "data_batch_5.bin",
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            ),
            file(
                "test_batch.bin",
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            ),
        ],
    },
    KnownDataset {
        name: "location",
        title: "Location (Foursquare check-ins in Bangkok)",
        records: [5_010, 0],
        features: 446,
        classes: 30,
        licence: "none stated",
        source: "https://github.com/privacytrustlab/datasets (dataset_location.tgz)",
        citation: "R. Shokri et al., Membership inference attacks against machine learning models, \
                   IEEE S&P 2017",
        layout: "the file bangkok of the unpacked archive",
        files: &[
            file(
                "dataset_location.tgz",
                "927203f85a868f8ee17a0ded1dc61699efe602167beabe34fbf45b4b1de94b33",
            ),
            file("bangkok", "2ca8f7fc231251e089823e44d39f2d1eed124574cc351c7f80368cfe631dd718"),
        ],
    },
];

/// The data set of this name.
pub fn known(name: &str) -> Option<&'static KnownDataset> {
    KNOWN.iter().find(|dataset| dataset.name == name)
}

/// How a file compares with the known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The very bytes of this file of this data set; of a gzipped file, those inside.
    Genuine { dataset: &'static str, file: &'static str },
    /// A file of this name is known, with other bytes.
    Different { datasets: Vec<&'static str>, file: &'static str },
    /// No data set known here has a file of this name or these bytes.
    Unknown,
}

/// A file that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub sha256: String,
    pub bytes: u64,
    pub verification: Verification,
}

/// Hashes a file and looks it up.
///
/// # Errors
/// The file cannot be read.
pub fn verify_file(path: &Path) -> std::io::Result<Verified> {
    let (sha256, bytes) = digest(path)?;
    let files = || KNOWN.iter().flat_map(|set| set.files.iter().map(move |file| (set.name, file)));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let find = |sha256: &str| files().find(|(_, file)| file.sha256 == sha256);
    // Gzipped anew, a file has other bytes, but not inside.
    let inside = || unpacked_digest(path).ok().flatten().and_then(|inside| find(&inside));
    let verification = match find(&sha256).or_else(inside) {
        Some((dataset, file)) => Verification::Genuine { dataset, file: file.name },
        None => {
            let alike: Vec<_> = files().filter(|(_, file)| file.name == name).collect();
            match alike.first() {
                Some((_, file)) => Verification::Different {
                    datasets: alike.iter().map(|(dataset, _)| *dataset).collect(),
                    file: file.name,
                },
                None => Verification::Unknown,
            }
        }
    };
    Ok(Verified { sha256, bytes, verification })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_well_formed_and_distinct() {
        let mut all: Vec<&str> = Vec::new();
        for file in KNOWN.iter().flat_map(|set| set.files) {
            let hexadecimal = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            assert!(
                file.sha256.len() == 64 && file.sha256.chars().all(hexadecimal),
                "{}",
                file.name
            );
            all.push(file.sha256);
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(KNOWN.iter().all(|set| known(set.name) == Some(set)));
    }

    #[test]
    fn genuine_different_and_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            verify_file(&path).unwrap()
        };
        let [data, _] = super::super::adult::originals().unwrap();
        let genuine = Verification::Genuine { dataset: "adult", file: "adult.data" };
        assert_eq!(write("renamed", &data).verification, genuine);
        let cut = write("adult.data", &data[1..]);
        assert_eq!(
            cut.verification,
            Verification::Different { datasets: vec!["adult"], file: "adult.data" }
        );
        assert_eq!(cut.bytes, 3_974_304);
        assert_eq!(write("mine.csv", "1").verification, Verification::Unknown);
        let path = folder.path().join("again.gz");
        let packed = std::fs::File::create(&path).unwrap();
        let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, data.as_bytes()).unwrap();
        packed.finish().unwrap();
        assert_eq!(verify_file(&path).unwrap().verification, genuine);
    }
}
