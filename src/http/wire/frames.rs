//! The frames of an HTTP/2 connection as they come in: when the head that was read last began, and
//! whether one is only half there.
//!
//! Hyper says neither. A head is one block of HEADERS and CONTINUATION frames, which nothing may
//! interrupt (RFC 9113, section 6.10); so only each frame's own head of nine bytes has to be looked at.

use tokio::time::Instant;

/// What an HTTP/2 connection begins with, before its first frame (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const FRAME_HEAD_BYTES: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;

/// Where in its frames a connection is.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Bytes of the preface, or of a frame behind its head, that are to come.
    left: usize,
    head: [u8; FRAME_HEAD_BYTES],
    head_bytes: usize,
    /// Whether a block of headers has begun and not ended.
    in_block: bool,
    /// Whether the end of the running frame ends such a block.
    ends_block: bool,
    /// Since when something is half there for which nothing but this connection waits.
    began: Option<Instant>,
    /// When the head that was read last began.
    last_head: Option<Instant>,
}

impl Frames {
    /// Before the preface.
    pub(crate) fn new() -> Self {
        Self {
            left: PREFACE.len(),
            head: [0; FRAME_HEAD_BYTES],
            head_bytes: 0,
            in_block: false,
            ends_block: false,
            began: None,
            last_head: None,
        }
    }

    /// Since when the preface, a head or a frame other than of a body is half there.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.began
    }

    /// When the first byte of the head came whose last byte came last.
    pub(crate) fn last_head(&self) -> Option<Instant> {
        self.last_head
    }

    /// Takes bytes that were read.
    pub(crate) fn follow(&mut self, mut bytes: &[u8], now: Instant) {
        while !bytes.is_empty() {
            let passed = if self.left > 0 { self.pass(bytes, now) } else { self.open(bytes, now) };
            bytes = &bytes[passed..];
        }
    }

    /// What follows a frame's head, or is the preface.
    fn pass(&mut self, bytes: &[u8], now: Instant) -> usize {
        // At the beginning of the preface; elsewhere a frame's head came before.
        if self.head_bytes == 0 {
            self.began.get_or_insert(now);
        }
        let passed = self.left.min(bytes.len());
        self.left -= passed;
        if self.left == 0 {
            self.close();
        }
        passed
    }

    /// The head of a frame.
    fn open(&mut self, bytes: &[u8], now: Instant) -> usize {
        self.began.get_or_insert(now);
        let passed = (FRAME_HEAD_BYTES - self.head_bytes).min(bytes.len());
        let end = self.head_bytes + passed;
        self.head[self.head_bytes..end].copy_from_slice(&bytes[..passed]);
        self.head_bytes = end;
        if end == FRAME_HEAD_BYTES {
            self.enter();
        }
        passed
    }

    fn enter(&mut self) {
        let [long, middle, short, kind, flags, ..] = self.head;
        self.left = usize::from(long) << 16 | usize::from(middle) << 8 | usize::from(short);
        self.in_block |= kind == HEADERS;
        self.ends_block =
            self.in_block && matches!(kind, HEADERS | CONTINUATION) && flags & END_HEADERS != 0;
        if kind == DATA && !self.in_block {
            // Bodies have a deadline of their own.
            self.began = None;
        }
        if self.left == 0 {
            self.close();
        }
    }

    /// A frame, or the preface, is whole.
    fn close(&mut self) {
        self.head_bytes = 0;
        if self.ends_block {
            self.last_head = self.began;
            (self.in_block, self.ends_block) = (false, false);
        }
        if !self.in_block {
            self.began = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn frame(kind: u8, flags: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], content].concat()
    }

    fn opened(now: Instant) -> Frames {
        let mut frames = Frames::new();
        frames.follow(PREFACE, now);
        frames
    }

    #[test]
    fn a_head_counts_from_its_first_byte_over_all_its_frames() {
        let start = Instant::now();
        let mut frames = opened(start);
        assert_eq!((frames.began(), frames.last_head()), (None, None));
        let head = [frame(HEADERS, 0, b"abc"), frame(CONTINUATION, END_HEADERS, b"d")].concat();
        for (second, byte) in (1..).zip(&head) {
            assert_eq!(frames.last_head(), None);
            frames.follow(&[*byte], start + second * SECOND);
        }
        assert_eq!((frames.began(), frames.last_head()), (None, Some(start + SECOND)));
        let late = start + 100 * SECOND;
        frames.follow(&frame(HEADERS, END_HEADERS, b"abc"), late);
        assert_eq!(frames.last_head(), Some(late));
    }

    #[test]
    fn what_is_half_there_is_known_unless_it_is_a_body() {
        let start = Instant::now();
        let mut frames = Frames::new();
        frames.follow(&PREFACE[..4], start);
        assert_eq!(frames.began(), Some(start));
        let later = start + SECOND;
        frames.follow(&PREFACE[4..], later);
        assert_eq!(frames.began(), None);
        let data = frame(DATA, 0, &[7; 300]);
        frames.follow(&data[..5], later);
        assert_eq!(frames.began(), Some(later));
        frames.follow(&data[5..20], later);
        assert_eq!(frames.began(), None);
        frames.follow(&data[20..], later);
        // An open block cannot be hidden behind other frames: hyper ends such a connection.
        frames.follow(&frame(HEADERS, 0, b""), later);
        frames.follow(&data, later + SECOND);
        assert_eq!((frames.began(), frames.last_head()), (Some(later), None));
    }

    proptest! {
        #[test]
        fn how_bytes_are_cut_into_reads_changes_nothing(
            contents in prop::collection::vec((0_u8..11, any::<u8>(), 0_usize..40), 1..12),
            cuts in prop::collection::vec(1_usize..30, 1..40),
        ) {
            let now = Instant::now();
            let mut bytes = PREFACE.to_vec();
            for (kind, flags, length) in contents {
                bytes.extend(frame(kind, flags, &vec![0xff; length]));
            }
            let (mut whole, mut parted) = (Frames::new(), Frames::new());
            whole.follow(&bytes, now);
            let (mut rest, mut cuts) = (bytes.as_slice(), cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (read, left) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                parted.follow(read, now);
                rest = left;
            }
            prop_assert_eq!(whole.began(), parted.began());
            prop_assert_eq!(whole.last_head(), parted.last_head());
            prop_assert_eq!(whole.left, 0);
        }

        #[test]
        fn arbitrary_bytes_are_followed(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            opened(Instant::now()).follow(&bytes, Instant::now());
        }
    }
}
