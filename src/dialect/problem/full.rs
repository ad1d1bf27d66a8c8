//! The status of a refusal for lack of room: the operator's choice.

use std::str::FromStr;

/// With which status a request is refused for which there is no room now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullStatus {
    /// 429.
    #[default]
    TooManyRequests,
    /// 503, as other servers of the field answer.
    ServiceUnavailable,
}

impl FullStatus {
    pub(super) fn code(self) -> u16 {
        match self {
            Self::TooManyRequests => 429,
            Self::ServiceUnavailable => 503,
        }
    }
}

impl FromStr for FullStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "429" => Ok(Self::TooManyRequests),
            "503" => Ok(Self::ServiceUnavailable),
            _ => Err(format!("{text:?} is no status of a full queue; write 429 or 503")),
        }
    }
}
