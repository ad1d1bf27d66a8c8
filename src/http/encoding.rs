//! Content encodings of request bodies: identity, gzip and zstd, decompressed within a limit.
//!
//! A compressed body may consist of several members (RFC 1952) or frames (RFC 8878); their number is
//! limited, because each costs a decoder's setup for a few bytes.

use std::io::{self, Read};

use axum::http::{HeaderMap, header};
use flate2::bufread::GzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::dialect::problem::RequestFault;

use super::respond::excerpt;

/// Most members or frames of one body.
const FRAMES_MAX: usize = 16;

/// Bytes asked of a decoder at a time.
const READ_BYTES: usize = 64 << 10;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// The one encoding that the headers declare.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, RequestFault> {
        let mut encoding = Self::Identity;
        for value in headers.get_all(header::CONTENT_ENCODING) {
            let found = String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase();
            encoding = match (encoding, found.as_str()) {
                (_, "" | "identity") => encoding,
                (Self::Identity, "gzip" | "x-gzip") => Self::Gzip,
                (Self::Identity, "zstd") => Self::Zstd,
                _ => return Err(RequestFault::Encoding { found: excerpt(&found) }),
            };
        }
        Ok(encoding)
    }

    /// The decoded body, of at most `bytes_max` bytes.
    pub(super) fn decode(self, body: Vec<u8>, bytes_max: usize) -> Result<Vec<u8>, RequestFault> {
        match self {
            Self::Identity => Ok(body),
            Self::Gzip => decode_frames(&body, bytes_max, "gzip", gzip_member),
            Self::Zstd => decode_frames(&body, bytes_max, "zstd", zstd_frame),
        }
    }
}

/// Decodes one frame from the start of its first argument, which it advances.
type Frame = fn(&mut &[u8], &mut Output) -> io::Result<()>;

fn decode_frames(
    mut body: &[u8],
    bytes_max: usize,
    encoding: &'static str,
    frame: Frame,
) -> Result<Vec<u8>, RequestFault> {
    let mut output = Output { bytes: Vec::new(), bytes_max, is_full: false };
    for _ in 0..FRAMES_MAX {
        if frame(&mut body, &mut output).is_err() {
            return Err(RequestFault::Damaged { encoding });
        }
        if output.is_full {
            return Err(RequestFault::BodyTooLarge { bytes_max });
        }
        if body.is_empty() {
            return Ok(output.bytes);
        }
    }
    Err(RequestFault::Damaged { encoding })
}

fn gzip_member(body: &mut &[u8], output: &mut Output) -> io::Result<()> {
    output.fill(&mut GzDecoder::new(body))
}

fn zstd_frame(body: &mut &[u8], output: &mut Output) -> io::Result<()> {
    // A window is as large as its frame says, and nothing larger than the output is ever needed
    // but by levels beyond 19 on longer inputs.
    let window_bytes_max = output.bytes_max as u64;
    let mut decoder = StreamingDecoder::new_with_max_window_size(body, window_bytes_max)
        .map_err(io::Error::other)?;
    output.fill(&mut decoder)
}

/// The decoded bytes so far.
struct Output {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// Whether there was more than the limit.
    is_full: bool,
}

impl Output {
    fn fill(&mut self, decoder: &mut impl Read) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = decoder.read(&mut buffer)?;
            if read == 0 {
                return Ok(());
            }
            if self.bytes.len() + read > self.bytes_max {
                self.is_full = true;
                return Ok(());
            }
            self.bytes.extend_from_slice(&buffer[..read]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    #[test]
    fn both_encodings_are_read_back_in_several_frames() {
        for (encoding, compress) in
            [(Encoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Encoding::Zstd, zstd)]
        {
            let body = [compress(b"one "), compress(&b"x".repeat(200_000))].concat();
            let decoded = encoding.decode(body, LIMIT).unwrap();
            assert_eq!(decoded.len(), 200_004);
            assert!(decoded.starts_with(b"one xx"));
            let too_many = compress(b"").repeat(FRAMES_MAX + 1);
            assert!(matches!(encoding.decode(too_many, LIMIT), Err(RequestFault::Damaged { .. })));
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bytes = vec![0; LIMIT + 1];
        for (encoding, bomb) in [(Encoding::Gzip, gzip(&bytes)), (Encoding::Zstd, zstd(&bytes))] {
            assert!(bomb.len() < LIMIT / 100);
            let fault = encoding.decode(bomb, LIMIT).unwrap_err();
            assert_eq!(fault, RequestFault::BodyTooLarge { bytes_max: LIMIT });
        }
    }

    #[test]
    fn a_damaged_body_is_refused() {
        for (encoding, whole) in
            [(Encoding::Gzip, gzip(&[7; 5_000])), (Encoding::Zstd, zstd(&[7; 5_000]))]
        {
            for length in 0..whole.len() {
                let cut = whole[..length].to_vec();
                let fault = encoding.decode(cut, LIMIT).unwrap_err();
                assert!(matches!(fault, RequestFault::Damaged { .. }), "{length}");
            }
            let trailing = [whole, b"x".to_vec()].concat();
            assert!(encoding.decode(trailing, LIMIT).is_err());
        }
    }

    #[test]
    fn an_unknown_encoding_is_named() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_ENCODING, value.parse().unwrap());
            }
            Encoding::of(&headers)
        };
        assert_eq!(of(&[]).unwrap(), Encoding::Identity);
        assert_eq!(of(&["GZIP"]).unwrap(), Encoding::Gzip);
        assert_eq!(of(&["zstd", "identity"]).unwrap(), Encoding::Zstd);
        for values in [["br", "identity"].as_slice(), &["gzip", "zstd"], &["gzip, zstd"]] {
            assert!(matches!(of(values), Err(RequestFault::Encoding { .. })));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = Encoding::Gzip.decode(bytes.clone(), LIMIT);
            let _ = Encoding::Zstd.decode(bytes.clone(), LIMIT);
            let mut framed = vec![0x28, 0xb5, 0x2f, 0xfd];
            framed.extend(bytes);
            let _ = Encoding::Zstd.decode(framed, LIMIT);
        }
    }
}
