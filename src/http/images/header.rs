//! What an image file's first bytes say: its format and its size in pixels.
//!
//! The headers are read by `imagesize`, which takes the few fields it needs from where they are and
//! neither decodes nor allocates.

use std::fmt;

use super::fault::BadImage;
use super::{IMAGE_BYTES_MAX, IMAGE_PIXELS_MAX};

/// Bytes that an unknown file is described by.
const START_BYTES: usize = 8;

/// A format of image files that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP, of all three kinds.
    WebP,
}

impl Format {
    /// By the magic bytes, and where the format fixes which chunk comes first, by that chunk.
    fn of(file: &[u8]) -> Option<Self> {
        let chunk = file.get(12..16);
        if file.starts_with(b"\xff\xd8\xff") {
            return Some(Self::Jpeg);
        }
        if file.starts_with(b"\x89PNG\r\n\x1a\n") && chunk == Some(b"IHDR") {
            return Some(Self::Png);
        }
        let is_webp = file.starts_with(b"RIFF") && file.get(8..12) == Some(b"WEBP");
        let kinds: [&[u8]; 3] = [b"VP8 ", b"VP8L", b"VP8X"];
        (is_webp && chunk.is_some_and(|chunk| kinds.contains(&chunk))).then_some(Self::WebP)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::WebP => "WebP",
        })
    }
}

/// An image as its header describes it; the pixels are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Image {
    /// As the first bytes say, whatever the sender called it.
    pub(crate) format: Format,
    /// In pixels, at least 1.
    pub(crate) width: u32,
    /// In pixels, at least 1.
    pub(crate) height: u32,
    /// Length of the file.
    pub(crate) bytes: usize,
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, width, height, bytes } = self;
        write!(f, "a {format} of {width} x {height} pixels, {bytes} bytes")
    }
}

impl Image {
    /// Describes `file` and checks it against the limits of one image.
    ///
    /// A file that is cut off after its header is not noticed.
    pub(super) fn of(file: &[u8]) -> Result<Self, BadImage> {
        let bytes = file.len();
        check_bytes(bytes)?;
        let format =
            Format::of(file).ok_or_else(|| BadImage::UnknownFormat { start: hex(file) })?;
        let size = imagesize::blob_size(file).map_err(|_| BadImage::NoSize { format })?;
        let side = |side: usize| u32::try_from(side).ok().filter(|side| *side > 0);
        let (Some(width), Some(height)) = (side(size.width), side(size.height)) else {
            return Err(BadImage::NoSize { format });
        };
        if u64::from(width) * u64::from(height) > IMAGE_PIXELS_MAX {
            return Err(BadImage::TooManyPixels { width, height, pixels_max: IMAGE_PIXELS_MAX });
        }
        Ok(Self { format, width, height, bytes })
    }
}

/// Checks the length of a file, before there is one.
pub(super) fn check_bytes(bytes: usize) -> Result<(), BadImage> {
    match bytes {
        0 => Err(BadImage::Empty),
        1..=IMAGE_BYTES_MAX => Ok(()),
        _ => Err(BadImage::TooLarge { bytes, bytes_max: IMAGE_BYTES_MAX }),
    }
}

fn hex(file: &[u8]) -> String {
    let bytes: Vec<String> = file.iter().take(START_BYTES).map(|b| format!("{b:02x}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{self, gif, jpeg, png, svg, webp};
    use super::*;

    fn size(file: &[u8]) -> (Format, u32, u32) {
        let image = Image::of(file).unwrap();
        assert_eq!(image.bytes, file.len());
        (image.format, image.width, image.height)
    }

    fn fault(file: &[u8]) -> String {
        Image::of(file).unwrap_err().to_string()
    }

    #[test]
    fn the_header_of_each_format_gives_its_size() {
        assert_eq!(size(&png(640, 480)), (Format::Png, 640, 480));
        assert_eq!(size(&jpeg(640, 480)), (Format::Jpeg, 640, 480));
        for kind in samples::WEBP {
            assert_eq!(size(&webp(kind, 640, 480)), (Format::WebP, 640, 480), "{kind}");
        }
    }

    #[test]
    fn a_jpeg_with_megabytes_before_its_frame_is_read() {
        let file = samples::jpeg_after(300, 640, 480);
        assert!(file.len() > 18 << 20);
        assert_eq!(size(&file), (Format::Jpeg, 640, 480));
    }

    #[test]
    fn pixels_are_counted_up_to_the_limit() {
        assert_eq!(size(&png(5000, 4000)), (Format::Png, 5000, 4000));
        assert_eq!(
            fault(&png(20_000_001, 1)),
            "is 20000001 x 1 pixels, at most 20000000 in all are accepted"
        );
        assert!(fault(&jpeg(4001, 5000)).contains("4001 x 5000 pixels"));
        assert!(fault(&webp("VP8L", 16_384, 16_384)).contains("16384 x 16384 pixels"));
    }

    #[test]
    fn case_53_a_small_file_that_claims_ten_gigapixels_is_refused() {
        assert!(fault(&png(100_000, 100_000)).contains("100000 x 100000 pixels"));
        assert!(fault(&png(u32::MAX, u32::MAX)).contains("4294967295 x 4294967295 pixels"));
    }

    #[test]
    fn bytes_are_counted_up_to_the_limit() {
        let mut file = png(1, 1);
        file.resize(IMAGE_BYTES_MAX, 0);
        assert_eq!(size(&file), (Format::Png, 1, 1));
        file.push(0);
        assert_eq!(fault(&file), "is 20971521 bytes, at most 20971520 are accepted");
        assert_eq!(fault(&[]), "is empty");
    }

    #[test]
    fn no_side_is_zero() {
        for file in [png(0, 5), jpeg(5, 0), webp("VP8 ", 0, 5)] {
            assert!(fault(&file).ends_with("header gives no width and height"));
        }
    }

    #[test]
    fn other_formats_are_refused_by_their_first_bytes() {
        let expected =
            "is not a PNG, JPEG or WebP file, its first bytes are 47 49 46 38 39 61 01 00";
        assert_eq!(fault(&gif()), expected);
        assert!(fault(&svg()).starts_with("is not a PNG"));
        assert!(fault(b"RIFF\x24\0\0\0WAVEfmt ").starts_with("is not a PNG"));
        let mut file = png(1, 1);
        file[12] = b'i';
        assert!(fault(&file).starts_with("is not a PNG"));
        assert!(fault(b"RIFF\x24\0\0\0WEBPVP9 ").starts_with("is not a PNG"));
    }

    #[test]
    fn a_file_that_ends_within_its_header_is_refused() {
        for (file, needed) in samples::with_header_lengths() {
            assert!(Image::of(&file[..needed]).is_ok(), "{file:?}");
            for length in 1..needed {
                assert!(Image::of(&file[..length]).is_err(), "{length} of {file:?}");
            }
        }
    }

    fn damaged() -> impl Strategy<Value = Vec<u8>> {
        let files: Vec<Vec<u8>> =
            samples::with_header_lengths().into_iter().map(|(file, _)| file).collect();
        let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
        let tail = prop::collection::vec(any::<u8>(), 0..64);
        (prop::sample::select(files), damage, any::<prop::sample::Index>(), tail).prop_map(
            |(mut file, damage, length, tail)| {
                for (place, byte) in damage {
                    let place = place.index(file.len());
                    file[place] = byte;
                }
                file.truncate(length.index(file.len() + 1));
                file.extend(tail);
                file
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn damaged_headers_give_an_image_within_the_limits_or_a_fault(file in damaged()) {
            if let Ok(image) = Image::of(&file) {
                prop_assert!(image.width > 0 && image.height > 0);
                let pixels = u64::from(image.width) * u64::from(image.height);
                prop_assert!(pixels <= IMAGE_PIXELS_MAX);
                prop_assert_eq!(Some(image.format), Format::of(&file));
            }
        }
    }
}
