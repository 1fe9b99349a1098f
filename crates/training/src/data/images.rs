//! A folder of images: `FOLDER/CLASS/*.{jpg,png}`, or `FOLDER/{train,test}/CLASS/*`. Classes are
//! the sub-folders in alphabetical order, images in the order of their names; all of one size.

use super::bytes::hexadecimal;
use super::error::{DataError, refuse};
use super::{Dataset, Pixels, Provenance, Split};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// No side longer than this: what a header may make us allocate.
const LONGEST_SIDE: usize = 1 << 12;
/// No file larger than this is read.
const LARGEST_FILE: u64 = 1 << 26;

/// Pixels of one image, the channel running fastest.
#[derive(Debug)]
struct Image {
    size: [usize; 3],
    bytes: Vec<u8>,
    sha256: [u8; 32],
}

/// Reads a folder; with sub-folders `train` and `test` both, otherwise all of it for training.
///
/// # Errors
/// The file that is not an image of the size of the first, or a folder without images.
pub fn read_images(folder: &Path, pixels: &Pixels) -> Result<Split, DataError> {
    let (train, test) = (folder.join("train"), folder.join("test"));
    if !(train.is_dir() && test.is_dir()) {
        return Ok(Split { train: read_part(folder, None, pixels)?, test: None });
    }
    let classes = folders(&train)?;
    let train = read_part(&train, Some(&classes), pixels)?;
    let test = read_part(&test, Some(&classes), pixels)?;
    if train.shape != test.shape {
        return Err(refuse(folder, "the images of `train` and of `test` differ in size"));
    }
    Ok(Split { train, test: Some(test) })
}

fn read_part(
    folder: &Path,
    classes: Option<&[String]>,
    pixels: &Pixels,
) -> Result<Dataset, DataError> {
    let found = folders(folder)?;
    if let Some(classes) = classes.filter(|classes| *classes != found) {
        return Err(refuse(folder, format!("classes {found:?}, but {classes:?} in `train`")));
    }
    if found.len() < 2 {
        return Err(refuse(folder, "needs a sub-folder for each of at least two classes"));
    }
    let mut files: Vec<(PathBuf, u32)> = Vec::new();
    for (class, label) in found.iter().zip(0..) {
        let names = sorted(&folder.join(class), |path| path.is_file() && is_image(path))?;
        if names.is_empty() {
            return Err(refuse(&folder.join(class), "holds no .jpg or .png file"));
        }
        files.extend(names.into_iter().map(|name| (folder.join(class).join(name), label)));
    }
    let images: Vec<Image> =
        files.par_iter().map(|(path, _)| read_image(path)).collect::<Result<_, _>>()?;
    let size = images[0].size;
    if let Some(place) = images.iter().position(|image| image.size != size) {
        let problem = format!(
            "is {:?} (height, width, channels), the first image is {size:?}",
            images[place].size
        );
        return Err(refuse(&files[place].0, problem));
    }
    // One hash for the folder: that of the images' hashes in their order.
    let mut hash = Sha256::new();
    images.iter().for_each(|image| hash.update(image.sha256));
    let provenance = Provenance {
        name: folder.display().to_string(),
        sha256: vec![hexadecimal(hash.finalize().as_slice())],
        ..Provenance::default()
    };
    let bytes: Vec<u8> = images.into_iter().flat_map(|image| image.bytes).collect();
    let labels = files.iter().map(|(_, label)| *label).collect();
    pixels
        .dataset(&bytes, labels, found.len(), size, provenance)
        .map_err(|problem| refuse(folder, problem))
}

fn folders(folder: &Path) -> Result<Vec<String>, DataError> {
    sorted(folder, Path::is_dir)
}

fn sorted(folder: &Path, keep: impl Fn(&Path) -> bool) -> Result<Vec<String>, DataError> {
    let broken = |error: std::io::Error| refuse(folder, error.to_string());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(broken)? {
        let path = entry.map_err(broken)?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && !name.starts_with('.')
            && keep(&path)
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn is_image(path: &Path) -> bool {
    let extension = path.extension().and_then(|text| text.to_str()).unwrap_or_default();
    ["jpg", "jpeg", "png"].contains(&extension.to_ascii_lowercase().as_str())
}

fn read_image(path: &Path) -> Result<Image, DataError> {
    let length = std::fs::metadata(path).map_err(|error| refuse(path, error.to_string()))?.len();
    if length > LARGEST_FILE {
        return Err(refuse(path, format!("{length} bytes are too many for one image")));
    }
    let file = std::fs::read(path).map_err(|error| refuse(path, error.to_string()))?;
    let (size, bytes) = if file.starts_with(b"\x89PNG") { png(&file) } else { jpeg(&file) }
        .map_err(|problem| refuse(path, problem))?;
    if bytes.len() != size.iter().product::<usize>() {
        return Err(refuse(path, format!("{} bytes of pixels for {size:?}", bytes.len())));
    }
    Ok(Image { size, bytes, sha256: Sha256::digest(&file).into() })
}

fn jpeg(file: &[u8]) -> Result<([usize; 3], Vec<u8>), String> {
    if !file.starts_with(&[0xFF, 0xD8]) {
        return Err("is neither JPEG nor PNG".to_owned());
    }
    let options = DecoderOptions::default()
        .set_max_width(LONGEST_SIDE)
        .set_max_height(LONGEST_SIDE)
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(|error| format!("is not a whole JPEG: {error}"))?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let bytes = decoder.decode().map_err(|error| format!("is not a whole JPEG: {error}"))?;
    let (width, height) = decoder.dimensions().ok_or("a JPEG without a size")?;
    if grey {
        // Three equal channels: keep one.
        return Ok(([height, width, 1], bytes.chunks_exact(3).map(|pixel| pixel[0]).collect()));
    }
    Ok(([height, width, 3], bytes))
}

fn png(file: &[u8]) -> Result<([usize; 3], Vec<u8>), String> {
    let broken = |error: png::DecodingError| format!("is not a whole PNG: {error}");
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let header = decoder.read_header_info().map_err(broken)?;
    let (width, height) = (header.width as usize, header.height as usize);
    if width > LONGEST_SIDE || height > LONGEST_SIDE {
        return Err(format!("{width} x {height} pixels are too many"));
    }
    let mut reader = decoder.read_info().map_err(broken)?;
    let channels = reader.output_color_type().0.samples();
    let mut bytes = vec![0; reader.output_buffer_size().ok_or("a PNG without a size")?];
    let frame = reader.next_frame(&mut bytes).map_err(broken)?;
    bytes.truncate(frame.buffer_size());
    // An alpha channel says how an image is shown, not what is on it.
    let kept = channels - usize::from(channels.is_multiple_of(2));
    let opaque = bytes.chunks_exact(channels).flat_map(|pixel| pixel[..kept].to_vec()).collect();
    Ok(([height, width, kept], opaque))
}
