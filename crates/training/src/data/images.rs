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
pub(crate) fn read_images(folder: &Path, pixels: &Pixels) -> Result<Split, DataError> {
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

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    fn write_png(path: &Path, color: png::ColorType, size: (u32, u32), bytes: &[u8]) {
        let mut encoder = png::Encoder::new(std::fs::File::create(path).unwrap(), size.0, size.1);
        encoder.set_color(color);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.write_header().unwrap().write_image_data(bytes).unwrap();
    }

    fn folder_of(classes: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for class in classes {
            std::fs::create_dir_all(folder.path().join(class)).unwrap();
        }
        folder
    }

    #[test]
    fn classes_and_images_in_the_order_of_their_names() {
        let folder = folder_of(&["dog", "cat"]);
        let rgb: Vec<u8> = (0..12).map(|x| x * 17).collect();
        write_png(&folder.path().join("dog/2.png"), png::ColorType::Rgb, (2, 2), &rgb);
        write_png(&folder.path().join("dog/1.png"), png::ColorType::Rgb, (2, 2), &[255; 12]);
        let rgba: Vec<u8> = (0..16).map(|x| if x % 4 == 3 { 9 } else { 51 }).collect();
        write_png(&folder.path().join("cat/a.png"), png::ColorType::Rgba, (2, 2), &rgba);
        let data = read_images(folder.path(), &Pixels::UNIT).unwrap().train;
        assert_eq!(data.labels, [0, 1, 1]);
        assert_eq!(data.shape, Shape::Image { height: 2, width: 2, channels: 3 });
        assert_eq!(data.row(0), [0.2; 12]);
        assert_eq!(data.row(1), [1.0; 12]);
        assert_eq!(data.row(2)[4], 68.0 / 255.0);
    }

    /// A real JPEG: 8 x 8, one colour, quality 90, encoded by libjpeg.
    #[test]
    fn jpegs_decode_to_their_colour() {
        let folder = folder_of(&["a", "b"]);
        std::fs::write(folder.path().join("a/x.jpg"), RED).unwrap();
        std::fs::write(folder.path().join("b/x.JPG"), RED).unwrap();
        let data = read_images(folder.path(), &Pixels::UNIT).unwrap().train;
        assert_eq!(data.shape, Shape::Image { height: 8, width: 8, channels: 3 });
        for pixel in data.row(0).chunks(3) {
            for (found, expected) in pixel.iter().zip([200.0, 30.0, 60.0]) {
                assert!((found * 255.0 - expected).abs() <= 3.0, "{pixel:?}");
            }
        }
        std::fs::write(folder.path().join("b/x.JPG"), &RED[..RED.len() / 2]).unwrap();
        let found = read_images(folder.path(), &Pixels::UNIT).unwrap_err().to_string();
        assert!(found.contains("b/x.JPG: is not a whole JPEG"), "{found}");
    }

    #[test]
    fn broken_folders_name_the_file() {
        let folder = folder_of(&["a", "b"]);
        let (first, second) = (folder.path().join("a/1.png"), folder.path().join("b/2.png"));
        write_png(&first, png::ColorType::Grayscale, (2, 2), &[0; 4]);
        let problem = || read_images(folder.path(), &Pixels::UNIT).unwrap_err().to_string();
        assert!(problem().contains("b: holds no .jpg or .png file"), "{}", problem());
        write_png(&second, png::ColorType::Grayscale, (2, 3), &[0; 6]);
        assert!(problem().contains("2.png: is [3, 2, 1]"), "{}", problem());
        let whole = std::fs::read(&first).unwrap();
        // A header that promises 2^31 pixels per side.
        let mut huge = whole.clone();
        huge[16..24].copy_from_slice(&[0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF]);
        for bytes in [huge, whole[..whole.len() / 2].to_vec(), b"GIF89a".to_vec(), vec![]] {
            std::fs::write(&second, bytes).unwrap();
            assert!(problem().contains("2.png: "), "{}", problem());
        }
        std::fs::remove_dir_all(folder.path().join("b")).unwrap();
        assert!(problem().contains("at least two classes"), "{}", problem());
    }

    const RED: &[u8] = &[
        0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10, 0x4A, 0x46, 0x49, 0x46, 0x00, 0x01, 0x01, 0x00, 0x00,
        0x01, 0x00, 0x01, 0x00, 0x00, 0xFF, 0xDB, 0x00, 0x43, 0x00, 0x03, 0x02, 0x02, 0x03, 0x02,
        0x02, 0x03, 0x03, 0x03, 0x03, 0x04, 0x03, 0x03, 0x04, 0x05, 0x08, 0x05, 0x05, 0x04, 0x04,
        0x05, 0x0A, 0x07, 0x07, 0x06, 0x08, 0x0C, 0x0A, 0x0C, 0x0C, 0x0B, 0x0A, 0x0B, 0x0B, 0x0D,
        0x0E, 0x12, 0x10, 0x0D, 0x0E, 0x11, 0x0E, 0x0B, 0x0B, 0x10, 0x16, 0x10, 0x11, 0x13, 0x14,
        0x15, 0x15, 0x15, 0x0C, 0x0F, 0x17, 0x18, 0x16, 0x14, 0x18, 0x12, 0x14, 0x15, 0x14, 0xFF,
        0xDB, 0x00, 0x43, 0x01, 0x03, 0x04, 0x04, 0x05, 0x04, 0x05, 0x09, 0x05, 0x05, 0x09, 0x14,
        0x0D, 0x0B, 0x0D, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14,
        0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14,
        0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14,
        0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0x14, 0xFF, 0xC0, 0x00, 0x11, 0x08, 0x00, 0x08,
        0x00, 0x08, 0x03, 0x01, 0x11, 0x00, 0x02, 0x11, 0x01, 0x03, 0x11, 0x01, 0xFF, 0xC4, 0x00,
        0x14, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x07, 0xFF, 0xC4, 0x00, 0x14, 0x10, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xC4, 0x00, 0x15,
        0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x06, 0x08, 0xFF, 0xC4, 0x00, 0x14, 0x11, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xDA, 0x00, 0x0C,
        0x03, 0x01, 0x00, 0x02, 0x11, 0x03, 0x11, 0x00, 0x3F, 0x00, 0x0A, 0x1A, 0x5B, 0xAF, 0xFF,
        0xD9,
    ];
}
