//! Image files for tests, written by hand: headers and nothing to decode behind them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The kinds of WebP, by their first chunk.
pub(super) const WEBP: [&str; 3] = ["VP8 ", "VP8L", "VP8X"];

/// A PNG: its signature and the chunk IHDR.
pub(super) fn png(width: u32, height: u32) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    file.extend(width.to_be_bytes());
    file.extend(height.to_be_bytes());
    // 8 bits RGB, and what stands for a checksum.
    file.extend([8, 2, 0, 0, 0, 0, 0, 0, 0]);
    file
}

/// A JPEG: its start, JFIF and the header of a baseline frame.
pub(super) fn jpeg(width: u16, height: u16) -> Vec<u8> {
    jpeg_after(0, width, height)
}

/// The same with this many application segments of 64 KiB before the frame.
pub(super) fn jpeg_after(segments: usize, width: u16, height: u16) -> Vec<u8> {
    let mut file = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0".to_vec();
    for _ in 0..segments {
        file.extend(b"\xff\xe2\xff\xff");
        file.resize(file.len() + 0xffff - 2, 0);
    }
    file.extend(b"\xff\xc0\0\x11\x08");
    file.extend(height.to_be_bytes());
    file.extend(width.to_be_bytes());
    file.extend(b"\x03\x01\x22\0\x02\x11\x01\x03\x11\x01");
    file
}

/// A WebP of one of the kinds [`WEBP`].
pub(super) fn webp(kind: &str, width: u32, height: u32) -> Vec<u8> {
    let chunk = match kind {
        "VP8 " => {
            let sides = (height << 16 | width).to_le_bytes();
            [b"\x30\x01\0\x9d\x01\x2a".to_vec(), sides.to_vec()].concat()
        }
        "VP8L" => {
            let sides = ((height - 1) << 14 | (width - 1)).to_le_bytes();
            [vec![0x2f], sides.to_vec()].concat()
        }
        "VP8X" => {
            let [w0, w1, w2, _] = (width - 1).to_le_bytes();
            let [h0, h1, h2, _] = (height - 1).to_le_bytes();
            vec![0, 0, 0, 0, w0, w1, w2, h0, h1, h2]
        }
        other => panic!("no WebP is of the kind {other}"),
    };
    let length = u32::try_from(chunk.len()).unwrap().to_le_bytes();
    [b"RIFF\x40\0\0\0WEBP", kind.as_bytes(), &length, &chunk].concat()
}

/// EXIF data (a TIFF file of one directory) that have this orientation and nothing else.
pub(super) fn exif(orientation: u8) -> Vec<u8> {
    let mut tiff = b"II*\0\x08\0\0\0\x01\0".to_vec();
    tiff.extend([0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0]);
    tiff.extend([0; 4]);
    tiff
}

/// A JPEG with these EXIF data.
pub(super) fn jpeg_with_exif(exif: &[u8], width: u16, height: u16) -> Vec<u8> {
    let length = u16::try_from(exif.len() + 8).unwrap().to_be_bytes();
    let segment = [b"\xff\xe1", &length[..], b"Exif\0\0", exif].concat();
    let file = jpeg(width, height);
    [&file[..2], &segment, &file[2..]].concat()
}

/// A PNG with these EXIF data.
pub(super) fn png_with_exif(exif: &[u8], width: u32, height: u32) -> Vec<u8> {
    let length = u32::try_from(exif.len()).unwrap().to_be_bytes();
    // What stands for a checksum is not looked at.
    [&png(width, height)[..], &length, b"eXIf", exif, &[0; 4]].concat()
}

/// A WebP with these EXIF data.
pub(super) fn webp_with_exif(exif: &[u8], width: u32, height: u32) -> Vec<u8> {
    let mut file = webp("VP8X", width, height);
    // The flag that says so.
    file[20] |= 8;
    file.extend(b"EXIF");
    file.extend(u32::try_from(exif.len()).unwrap().to_le_bytes());
    file.extend(exif);
    let length = u32::try_from(file.len() - 8).unwrap().to_le_bytes();
    file[4..8].copy_from_slice(&length);
    file
}

/// A GIF of one pixel.
pub(super) fn gif() -> Vec<u8> {
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x01D\0;".to_vec()
}

/// An SVG.
pub(super) fn svg() -> Vec<u8> {
    b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>".to_vec()
}

/// A file of each format and kind, with the bytes up to the end of its width and height.
pub(super) fn with_header_lengths() -> Vec<(Vec<u8>, usize)> {
    vec![
        (png(300, 200), 24),
        (jpeg(300, 200), 29),
        (webp("VP8 ", 300, 200), 30),
        (webp("VP8L", 300, 200), 25),
        (webp("VP8X", 300, 200), 30),
    ]
}

/// `file` as a data URL of this type.
pub(super) fn url(kind: &str, file: &[u8]) -> String {
    format!("data:image/{kind};base64,{}", STANDARD.encode(file))
}
