//! Content encodings of request bodies: identity, gzip and zstd, decompressed within a limit.
//!
//! A compressed body may consist of several members (RFC 1952) or frames (RFC 8878); their number is
//! limited, because each costs a decoder's setup for a few bytes.

use std::io::{self, Read};

use axum::http::{HeaderMap, header};
use flate2::bufread::GzDecoder;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, FrameHeaderError, ReadFrameHeaderError};

use crate::dialect::problem::RequestFault;

use super::respond::excerpt;

/// Most members or frames of one body.
const FRAMES_MAX: usize = 16;

/// Window that a zstd frame may have however short a body may be: RFC 8878 asks this of all decoders,
/// and encoders that do not know a text's length rely on it.
const WINDOW_BYTES_MIN: usize = 8 << 20;

/// Bytes asked of a decoder at a time.
const READ_BYTES: usize = 64 << 10;

/// How a body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

impl Encoding {
    /// The one encoding that the headers declare.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, RequestFault> {
        let mut encoding = Self::Identity;
        // Hyper takes a body off its chunks, and leaves what else it is told to take off.
        let codings = headers.get_all(header::TRANSFER_ENCODING).iter();
        let codings: Vec<_> =
            codings.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let found = codings.join(", ");
        if !codings.is_empty() && !found.trim().eq_ignore_ascii_case("chunked") {
            return Err(RequestFault::Encoding { found: excerpt(&found) });
        }
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
    pub(crate) fn decode(self, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, RequestFault> {
        match self {
            Self::Identity => Ok(body.to_vec()),
            Self::Gzip => decode_frames(body, bytes_max, "gzip", gzip_member),
            Self::Zstd => decode_frames(body, bytes_max, "zstd", zstd_frame),
        }
    }

    /// The decoded body where something was to be decoded and it is of at most `bytes_max` bytes; no more is
    /// decoded to know that. However short a body comes, it can be as long as a body may be.
    pub(super) fn decode_short(
        self,
        body: &[u8],
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, RequestFault> {
        if self == Self::Identity || body.len() > bytes_max {
            return Ok(None);
        }
        match self.decode(body, bytes_max) {
            Ok(text) => Ok(Some(text)),
            // With the room of a long one it may be right.
            Err(RequestFault::BodyTooLarge { .. } | RequestFault::Window { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// Decodes one frame from the start of its first argument, which it advances.
type Frame = fn(&mut &[u8], &mut Output) -> Result<(), RequestFault>;

fn decode_frames(
    mut body: &[u8],
    bytes_max: usize,
    encoding: &'static str,
    frame: Frame,
) -> Result<Vec<u8>, RequestFault> {
    let mut output = Output { bytes: Vec::new(), bytes_max, is_full: false };
    for _ in 0..FRAMES_MAX {
        frame(&mut body, &mut output)?;
        if output.is_full {
            return Err(RequestFault::BodyTooLarge { bytes_max });
        }
        if body.is_empty() {
            return Ok(output.bytes);
        }
    }
    Err(RequestFault::Damaged { encoding })
}

fn gzip_member(body: &mut &[u8], output: &mut Output) -> Result<(), RequestFault> {
    output.fill(&mut GzDecoder::new(body)).map_err(|_| RequestFault::Damaged { encoding: "gzip" })
}

const ZSTD_DAMAGED: RequestFault = RequestFault::Damaged { encoding: "zstd" };

fn zstd_frame(body: &mut &[u8], output: &mut Output) -> Result<(), RequestFault> {
    // A window is as large as its frame says, and nothing larger than the output is ever needed
    // but by levels beyond 19 on longer inputs.
    let window_bytes_max = output.bytes_max.max(WINDOW_BYTES_MIN) as u64;
    let is_single_segment = body.get(4).is_some_and(|descriptor| descriptor & 0x20 != 0);
    let opened = StreamingDecoder::new_with_max_window_size(&mut *body, window_bytes_max);
    let mut decoder = match opened {
        Ok(decoder) => decoder,
        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
            length,
            ..
        })) => return skip(body, length),
        Err(
            FrameDecoderError::WindowSizeTooBig { .. }
            | FrameDecoderError::FrameHeaderError(FrameHeaderError::WindowTooBig { .. }),
        ) if is_single_segment => {
            // The window is the content then.
            return Err(RequestFault::BodyTooLarge { bytes_max: output.bytes_max });
        }
        Err(
            FrameDecoderError::WindowSizeTooBig { requested: bytes, .. }
            | FrameDecoderError::FrameHeaderError(FrameHeaderError::WindowTooBig { got: bytes }),
        ) => return Err(RequestFault::Window { bytes, bytes_max: window_bytes_max }),
        Err(_) => return Err(ZSTD_DAMAGED),
    };
    let before = output.bytes.len();
    output.fill(&mut decoder).map_err(|_| ZSTD_DAMAGED)?;
    if output.is_full {
        return Ok(());
    }
    // The decoder reads these and leaves it to its caller to compare them.
    let frame = &decoder.decoder;
    let announced_bytes = frame.content_size();
    let checksum = frame.get_checksum_from_data();
    let is_of_announced_length =
        announced_bytes == 0 || announced_bytes == (output.bytes.len() - before) as u64;
    if is_of_announced_length && (checksum.is_none() || checksum == frame.get_calculated_checksum())
    {
        Ok(())
    } else {
        Err(ZSTD_DAMAGED)
    }
}

/// Passes over the content of a skippable frame.
fn skip(body: &mut &[u8], length: u32) -> Result<(), RequestFault> {
    let length = usize::try_from(length).map_err(|_| ZSTD_DAMAGED)?;
    *body = body.get(length..).ok_or(ZSTD_DAMAGED)?;
    Ok(())
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
            let decoded = encoding.decode(&body, LIMIT).unwrap();
            assert_eq!(decoded.len(), 200_004);
            assert!(decoded.starts_with(b"one xx"));
            let too_many = compress(b"").repeat(FRAMES_MAX + 1);
            assert!(matches!(encoding.decode(&too_many, LIMIT), Err(RequestFault::Damaged { .. })));
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bytes = vec![0; LIMIT + 1];
        for (encoding, bomb) in [(Encoding::Gzip, gzip(&bytes)), (Encoding::Zstd, zstd(&bytes))] {
            assert!(bomb.len() < LIMIT / 100);
            let fault = encoding.decode(&bomb, LIMIT).unwrap_err();
            assert_eq!(fault, RequestFault::BodyTooLarge { bytes_max: LIMIT });
        }
    }

    #[test]
    fn only_what_is_short_when_unpacked_is_unpacked_as_a_short_one() {
        for (encoding, compress) in
            [(Encoding::Gzip, gzip as fn(&[u8]) -> Vec<u8>), (Encoding::Zstd, zstd)]
        {
            let short = |bytes: &[u8]| encoding.decode_short(bytes, 1_000);
            assert_eq!(short(&compress(&[7; 1_000])).unwrap().unwrap(), [7; 1_000]);
            assert_eq!(short(&compress(&[7; 1_001])).unwrap(), None);
            assert_eq!(short(&[0; 1_001]).unwrap(), None, "not looked at");
            assert!(matches!(short(b"neither"), Err(RequestFault::Damaged { .. })));
        }
        let wide = raw_frame(Some((24 - 10) << 3), 0, b"x");
        assert_eq!(Encoding::Zstd.decode_short(&wide, 1_000).unwrap(), None);
        assert_eq!(Encoding::Identity.decode_short(b"x", 1_000).unwrap(), None);
    }

    #[test]
    fn a_damaged_body_is_refused() {
        for (encoding, whole) in
            [(Encoding::Gzip, gzip(&[7; 5_000])), (Encoding::Zstd, zstd(&[7; 5_000]))]
        {
            for length in 0..whole.len() {
                let cut = whole[..length].to_vec();
                let fault = encoding.decode(&cut, LIMIT).unwrap_err();
                assert!(matches!(fault, RequestFault::Damaged { .. }), "{length}");
            }
            let trailing = [whole, b"x".to_vec()].concat();
            assert!(encoding.decode(&trailing, LIMIT).is_err());
        }
    }

    #[test]
    fn content_that_is_not_what_was_compressed_is_refused() {
        let text = b"refund me NOW, or I shall call the bank";
        let mut stored = GzEncoder::new(Vec::new(), Compression::none());
        stored.write_all(text).unwrap();
        let zstd = compress_to_vec(text.as_slice(), CompressionLevel::Uncompressed);
        for (encoding, whole) in
            [(Encoding::Gzip, stored.finish().unwrap()), (Encoding::Zstd, zstd)]
        {
            let at = whole.windows(3).position(|bytes| bytes == b"NOW").unwrap();
            let mut changed = whole.clone();
            changed[at + 2] = b'T';
            let mut checksum = whole.clone();
            let end = checksum.len() - if encoding == Encoding::Gzip { 5 } else { 1 };
            checksum[end] ^= 1;
            for body in [changed, checksum] {
                let fault = encoding.decode(&body, LIMIT).unwrap_err();
                assert!(matches!(fault, RequestFault::Damaged { .. }), "{encoding:?}");
            }
            assert_eq!(encoding.decode(&whole, LIMIT).unwrap(), text);
        }
    }

    /// A zstd frame of one raw block, without a checksum; `window` is its descriptor, and without one
    /// the frame says that it is a single segment of `content` bytes.
    fn raw_frame(window: Option<u8>, content: u8, text: &[u8]) -> Vec<u8> {
        let block = u32::try_from(text.len()).unwrap() << 3 | 1;
        let head = match window {
            Some(window) => [0x00, window],
            None => [0x20, content],
        };
        [&[0x28, 0xb5, 0x2f, 0xfd], &head[..], &block.to_le_bytes()[..3], text].concat()
    }

    #[test]
    fn a_frame_holds_as_many_bytes_as_it_announces() {
        let decode = |content| Encoding::Zstd.decode(&raw_frame(None, content, b"four"), LIMIT);
        assert_eq!(decode(4).unwrap(), b"four");
        for content in [1, 3, 5, 255] {
            assert_eq!(decode(content).unwrap_err(), ZSTD_DAMAGED, "{content}");
        }
    }

    #[test]
    fn skippable_frames_are_passed_over() {
        let skippable = |length: u32, content: &[u8]| {
            [&0x184D_2A5F_u32.to_le_bytes(), &length.to_le_bytes(), content].concat()
        };
        let text = [skippable(4, b"abcd"), zstd(b"x"), skippable(0, b"")].concat();
        assert_eq!(Encoding::Zstd.decode(&text, LIMIT).unwrap(), b"x");
        for cut in [skippable(4, b"abc"), skippable(u32::MAX, b"abcd")] {
            let body = [zstd(b"x"), cut].concat();
            assert_eq!(Encoding::Zstd.decode(&body, LIMIT).unwrap_err(), ZSTD_DAMAGED);
        }
    }

    #[test]
    fn a_window_over_the_limit_is_named_with_the_limit() {
        let decode = |log: u8, limit| {
            Encoding::Zstd.decode(&raw_frame(Some((log - 10) << 3), 0, b"x"), limit)
        };
        // 8 MiB is taken whatever the limit of a body.
        assert_eq!(decode(23, LIMIT).unwrap(), b"x");
        let fault = decode(24, LIMIT).unwrap_err();
        assert_eq!(fault, RequestFault::Window { bytes: 16 << 20, bytes_max: 8 << 20 });
        let message = fault.to_string();
        assert!(message.contains("16777216") && message.contains("8388608"), "{message}");
        assert_eq!(decode(25, 32 << 20).unwrap(), b"x");
        assert!(matches!(decode(41, 32 << 20), Err(RequestFault::Window { .. })));
        // A single segment over the limit is a body over the limit.
        let head = [0x28, 0xb5, 0x2f, 0xfd, 0xa0];
        let long = [&head[..], &(16_u32 << 20).to_le_bytes()].concat();
        let fault = Encoding::Zstd.decode(&long, LIMIT).unwrap_err();
        assert_eq!(fault, RequestFault::BodyTooLarge { bytes_max: LIMIT });
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
        let within = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.append(header::TRANSFER_ENCODING, value.parse().unwrap());
            Encoding::of(&headers)
        };
        assert_eq!(within("Chunked").unwrap(), Encoding::Identity);
        assert!(matches!(within("gzip, chunked"), Err(RequestFault::Encoding { .. })));
        for values in [["br", "identity"].as_slice(), &["gzip", "zstd"], &["gzip, zstd"]] {
            assert!(matches!(of(values), Err(RequestFault::Encoding { .. })));
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = Encoding::Gzip.decode(&bytes, LIMIT);
            let _ = Encoding::Zstd.decode(&bytes, LIMIT);
            let mut framed = vec![0x28, 0xb5, 0x2f, 0xfd];
            framed.extend(bytes);
            let _ = Encoding::Zstd.decode(&framed, LIMIT);
        }
    }
}
