//! What an image file's first bytes say: its format and its size in pixels.
//!
//! The headers are read by `imagesize`, which takes the few fields it needs from where they are and
//! neither decodes nor allocates.

use crate::dialect::images::ImageRules;
use crate::http::respond::excerpt;
use crate::service::images::{Format, ImageHeader};

use super::IMAGE_BYTES_MAX;
use super::fault::BadImage;
use super::orientation;

/// Bytes that an unknown file is described by.
const START_BYTES: usize = 8;

/// Media types that say nothing about what a file is.
const UNTYPED: [&str; 3] =
    ["application/octet-stream", "binary/octet-stream", "application/binary"];

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

    /// The same, of a file that begins with `start`.
    pub(super) fn found(start: &[u8]) -> Result<Self, BadImage> {
        let unknown = || match start {
            [] => BadImage::Empty,
            _ => BadImage::UnknownFormat { start: hex(start) },
        };
        Self::of(start).ok_or_else(unknown)
    }

    /// Whether a media type, in lower case and without parameters, names it; old names do too.
    fn is_named(self, media: &str) -> bool {
        match self {
            Self::Png => matches!(media, "image/png" | "image/x-png" | "image/apng"),
            Self::Jpeg => matches!(media, "image/jpeg" | "image/jpg" | "image/pjpeg"),
            Self::WebP => media == "image/webp",
        }
    }
}

/// Describes `file` and checks it against the limits of one image.
///
/// A file that is cut off after its header is not noticed.
pub(super) fn read(file: &[u8], rules: ImageRules) -> Result<ImageHeader, BadImage> {
    let bytes = file.len();
    check_bytes(bytes)?;
    let format = Format::found(file)?;
    let size = imagesize::blob_size(file).map_err(|_| BadImage::NoSize { format })?;
    let side = |side: usize| u32::try_from(side).ok().filter(|side| *side > 0);
    let (Some(width), Some(height)) = (side(size.width), side(size.height)) else {
        return Err(BadImage::NoSize { format });
    };
    check_pixels(width, height, rules)?;
    let orientation = orientation::of(file);
    let turned = orientation::lies_on_its_side(orientation);
    let (width, height) = if turned { (height, width) } else { (width, height) };
    Ok(ImageHeader { format, width, height, orientation, bytes })
}

fn check_pixels(width: u32, height: u32, rules: ImageRules) -> Result<(), BadImage> {
    let ImageRules { pixels_max, side_max, .. } = rules;
    if u64::from(width) * u64::from(height) > pixels_max {
        return Err(BadImage::TooManyPixels { width, height, pixels_max });
    }
    if width.max(height) > side_max {
        return Err(BadImage::TooLong { width, height, side_max });
    }
    Ok(())
}

/// Refuses a file that is declared as another format than it is; a type that says nothing is none.
pub(super) fn check_declared(media: &str, format: Format) -> Result<(), BadImage> {
    let declared = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let says_nothing = declared.is_empty() || UNTYPED.contains(&declared.as_str());
    if says_nothing || format.is_named(&declared) {
        return Ok(());
    }
    Err(BadImage::OtherType { declared: excerpt(&declared), format })
}

/// Checks the length of a file, before there is one.
pub(super) fn check_bytes(bytes: usize) -> Result<(), BadImage> {
    if bytes == 0 { Err(BadImage::Empty) } else { check_bytes_max(bytes) }
}

/// The same of one that is still coming.
pub(super) fn check_bytes_max(bytes: usize) -> Result<(), BadImage> {
    let bytes_max = IMAGE_BYTES_MAX;
    if bytes > bytes_max { Err(BadImage::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}

fn hex(file: &[u8]) -> String {
    let bytes: Vec<String> = file.iter().take(START_BYTES).map(|b| format!("{b:02x}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{
        self, exif, gif, jpeg, jpeg_with_exif, png, png_with_exif, svg, webp, webp_with_exif,
    };
    use super::*;

    const RULES: ImageRules = ImageRules::DECISIO;

    fn size(file: &[u8]) -> (Format, u32, u32) {
        let image = read(file, RULES).unwrap();
        assert_eq!(image.bytes, file.len());
        (image.format, image.width, image.height)
    }

    fn fault(file: &[u8]) -> String {
        read(file, RULES).unwrap_err().to_string()
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
    fn case_53_a_small_file_that_claims_gigapixels_is_refused() {
        let small = png(40_000, 40_000);
        let expected = "is 40000 x 40000 pixels, at most 40000000 in all are accepted";
        assert!(small.len() < 4096);
        assert_eq!(read(&small, ImageRules::ALL).unwrap_err().to_string(), expected);
        assert!(fault(&small).contains("40000 x 40000 pixels"));
        assert!(fault(&png(100_000, 100_000)).contains("100000 x 100000 pixels"));
        assert!(fault(&png(u32::MAX, u32::MAX)).contains("4294967295 x 4294967295 pixels"));
    }

    #[test]
    fn a_side_has_a_limit_of_its_own() {
        let fault = |file: &[u8]| read(file, ImageRules::ALL).unwrap_err().to_string();
        assert!(read(&png(12_000, 3_333), ImageRules::ALL).is_ok());
        let expected = "is 12001 x 1 pixels, at most 12000 on a side are accepted";
        assert_eq!(fault(&png(12_001, 1)), expected);
        assert!(fault(&png(1, 12_001)).contains("1 x 12001 pixels"));
        assert!(fault(&png(12_000, 3_334)).contains("at most 40000000 in all"));
    }

    #[test]
    fn an_image_on_its_side_is_as_wide_as_it_is_stored_high() {
        for (orientation, sides) in [(1, (40, 30)), (4, (40, 30)), (5, (30, 40)), (8, (30, 40))] {
            let exif = exif(orientation);
            for file in [
                jpeg_with_exif(&exif, 40, 30),
                png_with_exif(&exif, 40, 30),
                webp_with_exif(&exif, 40, 30),
            ] {
                let image = read(&file, RULES).unwrap();
                assert_eq!((image.width, image.height), sides, "{image:?}");
                assert_eq!(image.orientation, orientation);
            }
        }
    }

    #[test]
    fn a_declared_type_is_that_of_the_bytes() {
        let check = |media: &str, format| check_declared(media, format).map_err(|f| f.to_string());
        for media in ["", "application/octet-stream", "IMAGE/JPEG; q=1", "image/jpg"] {
            assert_eq!(check(media, Format::Jpeg), Ok(()), "{media}");
        }
        let expected = "is declared as image/png, but its first bytes are those of a JPEG file";
        assert_eq!(check("image/png", Format::Jpeg), Err(expected.to_owned()));
        for media in ["text/html", "image/", "image/svg+xml", "image/webp"] {
            assert!(check(media, Format::Png).is_err(), "{media}");
        }
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
            assert!(read(&file[..needed], RULES).is_ok(), "{file:?}");
            for length in 1..needed {
                assert!(read(&file[..length], RULES).is_err(), "{length} of {file:?}");
            }
        }
    }

    fn damaged() -> impl Strategy<Value = Vec<u8>> {
        let mut files: Vec<Vec<u8>> =
            samples::with_header_lengths().into_iter().map(|(file, _)| file).collect();
        let exif = exif(6);
        files.extend([
            jpeg_with_exif(&exif, 300, 200),
            png_with_exif(&exif, 300, 200),
            webp_with_exif(&exif, 300, 200),
        ]);
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
            if let Ok(image) = read(&file, RULES) {
                prop_assert!(image.width > 0 && image.height > 0);
                let pixels = u64::from(image.width) * u64::from(image.height);
                prop_assert!(pixels <= RULES.pixels_max);
                prop_assert_eq!(Some(image.format), Format::of(&file));
            }
        }
    }
}
