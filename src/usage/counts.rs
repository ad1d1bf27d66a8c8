//! Counts of one tenant over some time: what is added, kept, summed up and shown.

use serde::Serialize;

/// Bytes of one count in a record.
const COUNT_BYTES: usize = size_of::<u64>();

/// How many counts there are.
const COUNTS: usize = 9;

/// What a tenant did, or what one request adds to it. All of them only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests with a valid key.
    pub requests: u64,
    /// Of these, the ones that were answered.
    pub answered: u64,
    /// Refused for lack of room or for a limit: 429 and 503.
    pub refused: u64,
    /// Ended with any other error.
    pub failed: u64,
    /// Questions that were answered.
    pub questions: u64,
    /// Reads that were run.
    pub reads: u64,
    /// Tokens that were run.
    pub computed_tokens: u64,
    /// Tokens that were found resident.
    pub cached_tokens: u64,
    /// Images that were read.
    pub images: u64,
}

impl Counts {
    /// Their names, in the order of a record.
    pub const NAMES: [&'static str; COUNTS] = [
        "requests",
        "answered",
        "refused",
        "failed",
        "questions",
        "reads",
        "computed_tokens",
        "cached_tokens",
        "images",
    ];

    /// The counts in the order of [`Counts::NAMES`], in which records have them. New ones go to the
    /// end, so that records of older versions stay readable.
    pub fn to_array(self) -> [u64; COUNTS] {
        [
            self.requests,
            self.answered,
            self.refused,
            self.failed,
            self.questions,
            self.reads,
            self.computed_tokens,
            self.cached_tokens,
            self.images,
        ]
    }

    fn from_array(array: [u64; COUNTS]) -> Self {
        let [requests, answered, refused, failed, questions, reads, computed, cached, images] =
            array;
        Self {
            requests,
            answered,
            refused,
            failed,
            questions,
            reads,
            computed_tokens: computed,
            cached_tokens: cached,
            images,
        }
    }

    /// Adds each of the other's counts.
    pub fn add(&mut self, other: Self) {
        let mut sums = self.to_array();
        for (sum, more) in sums.iter_mut().zip(other.to_array()) {
            *sum = sum.saturating_add(more);
        }
        *self = Self::from_array(sums);
    }

    /// The sum of several.
    pub fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }

    /// Appends the record: each count in eight bytes, the lowest first.
    pub(super) fn encode(self, record: &mut Vec<u8>) {
        record.extend(self.to_array().into_iter().flat_map(u64::to_le_bytes));
    }

    /// Reads a record; what an older version did not count is 0.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn decode(record: &[u8]) -> Result<Self, String> {
        let (counts, rest) = record.as_chunks::<COUNT_BYTES>();
        if !rest.is_empty() || counts.len() > COUNTS {
            let (found, most) = (record.len(), COUNTS * COUNT_BYTES);
            return Err(format!(
                "a record of {found} bytes; 8 for each count, at most {most}, are known"
            ));
        }
        let mut array = [0; COUNTS];
        for (count, bytes) in array.iter_mut().zip(counts) {
            *count = u64::from_le_bytes(*bytes);
        }
        Ok(Self::from_array(array))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_fields_are_in_one_order() {
        let counts = Counts::from_array([1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let json = serde_json::to_value(counts).unwrap();
        for (name, count) in Counts::NAMES.iter().zip(counts.to_array()) {
            assert_eq!(json[name], count, "{name}");
        }
        assert_eq!(json.as_object().unwrap().len(), Counts::NAMES.len());
    }

    #[test]
    fn a_sum_stops_at_the_largest_number() {
        let most = Counts { reads: u64::MAX, images: 1, ..Counts::default() };
        let one = Counts { reads: 1, images: 1, ..Counts::default() };
        assert_eq!(Counts::sum([most, one]), Counts { reads: u64::MAX, images: 2, ..most });
    }

    #[test]
    fn a_record_of_an_older_version_is_read_and_one_of_a_newer_is_refused() {
        let mut record = Vec::new();
        Counts::from_array([1, 2, 3, 4, 5, 6, 7, 8, 9]).encode(&mut record);
        assert_eq!(
            Counts::decode(&record[..16]).unwrap(),
            Counts { requests: 1, answered: 2, ..Counts::default() }
        );
        assert!(Counts::decode(&record[..15]).unwrap_err().contains("15 bytes"));
        record.extend([0; 8]);
        assert!(Counts::decode(&record).unwrap_err().contains("80 bytes"));
    }

    proptest! {
        /// Decoding undoes encoding.
        #[test]
        fn a_record_is_read_as_it_was_written(array: [u64; COUNTS]) {
            let mut record = Vec::new();
            Counts::from_array(array).encode(&mut record);
            prop_assert_eq!(Counts::decode(&record).unwrap().to_array(), array);
        }
    }
}
