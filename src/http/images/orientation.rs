//! How the pixels of an image file are to be turned, as its EXIF data say.
//!
//! Cameras store what the sensor saw and note how they were held, so that without this a model is
//! shown people lying on their side.

use std::io::Cursor;

use exif::{In, Reader, Tag};

/// Left as they are.
pub(super) const UPRIGHT: u8 = 1;

/// The orientation of a JPEG, PNG or WebP file, 1 to 8 (EXIF 3.0, tag 0x0112); [`UPRIGHT`] where it has
/// none that can be read.
pub(super) fn of(file: &[u8]) -> u8 {
    let Ok(exif) = Reader::new().read_from_container(&mut Cursor::new(file)) else {
        return UPRIGHT;
    };
    let value = exif.get_field(Tag::Orientation, In::PRIMARY);
    let value = value.and_then(|field| field.value.get_uint(0));
    value
        .and_then(|value| u8::try_from(value).ok())
        .filter(|n| (1..=8).contains(n))
        .unwrap_or(UPRIGHT)
}

/// Whether width and height change places.
pub(super) fn lies_on_its_side(orientation: u8) -> bool {
    (5..=8).contains(&orientation)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{exif, jpeg, jpeg_with_exif, png, png_with_exif, webp_with_exif};
    use super::*;

    #[test]
    fn each_format_says_how_it_is_to_be_turned() {
        for orientation in 1..=8 {
            let exif = exif(orientation);
            assert_eq!(of(&jpeg_with_exif(&exif, 4, 3)), orientation, "JPEG");
            assert_eq!(of(&png_with_exif(&exif, 4, 3)), orientation, "PNG");
            assert_eq!(of(&webp_with_exif(&exif, 4, 3)), orientation, "WebP");
        }
    }

    #[test]
    fn what_cannot_be_read_is_upright() {
        assert_eq!((of(&jpeg(4, 3)), of(&png(4, 3)), of(b"")), (UPRIGHT, UPRIGHT, UPRIGHT));
        for orientation in [0, 9, 255] {
            assert_eq!(of(&jpeg_with_exif(&exif(orientation), 4, 3)), UPRIGHT);
        }
        let whole = exif(6);
        for length in 0..whole.len() - 4 {
            assert_eq!(of(&jpeg_with_exif(&whole[..length], 4, 3)), UPRIGHT, "{length}");
        }
    }
}
