//! Why something failed, in words for whoever typed the command: what libraries say of themselves is
//! for those who program with them.

use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use rustls::{CertificateError, Error as TlsError};

/// What is wanted where a text is no number; nothing of other faults.
pub(super) fn number(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<ParseIntError>() {
        let sides = [
            (IntErrorKind::PosOverflow, "it is too large"),
            (IntErrorKind::NegOverflow, "it is too small"),
        ];
        let side = sides.into_iter().find(|(kind, _)| kind == error.kind());
        return Some(side.map_or("a whole number is wanted", |(_, words)| words));
    }
    error.is::<ParseFloatError>().then_some("a number is wanted")
}

/// What a parser of whole numbers says of one that is out of its range, without `..=`.
pub(super) fn range(told: &str) -> String {
    match told.split_once(" is not in ").and_then(|(n, range)| Some((n, range.split_once("..=")?)))
    {
        Some((number, (least, most))) => format!("{number} is not within {least} to {most}"),
        None => told.to_owned(),
    }
}

/// Reads a whole number.
///
/// # Errors
/// What is wanted.
pub(super) fn whole(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: ParseIntError| number(&error).unwrap_or_default().to_owned())
}

/// Reads a whole number from 0 on.
///
/// # Errors
/// What is wanted.
pub(super) fn count(text: &str) -> Result<u32, String> {
    let most = u32::MAX;
    text.parse().map_err(|_| format!("a whole number within 0 to {most} is wanted"))
}

/// Reads a number.
///
/// # Errors
/// What is wanted.
pub(super) fn share(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "a number is wanted".to_owned())
}

/// Why what came from a server is no JSON.
pub(super) fn json(error: &serde_json::Error) -> String {
    format!("no JSON came back: line {}, column {}", error.line(), error.column())
}

/// Why an exchange with a server failed.
pub(super) fn exchange(error: &ureq::Error) -> String {
    use ureq::Error as Failure;

    if let Failure::Io(error) = error {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
        return inner.map_or_else(|| error.to_string(), of_tls);
    }
    if let Failure::Rustls(error) = error {
        return of_tls(error);
    }
    if let Failure::BodyExceedsLimit(limit) = error {
        return format!("its answer has more than {limit} bytes, which are read at most");
    }
    let words = [
        (matches!(error, Failure::Timeout(_)), "there is no answer in time"),
        (matches!(error, Failure::HostNotFound), "there is no host of this name"),
        (matches!(error, Failure::ConnectionFailed), "there is no connection to it"),
        (matches!(error, Failure::BadUri(_) | Failure::Http(_)), "this is no address"),
        (matches!(error, Failure::Protocol(_)), "what it answers is no HTTP"),
    ];
    chosen(&words).unwrap_or_else(|| error.to_string())
}

fn of_tls(error: &TlsError) -> String {
    if let TlsError::InvalidCertificate(error) = error {
        return of_certificate(error);
    }
    let words = [(matches!(error, TlsError::InvalidMessage(_)), "it does not speak TLS")];
    chosen(&words).unwrap_or_else(|| format!("TLS: {error}"))
}

fn of_certificate(error: &CertificateError) -> String {
    use CertificateError as Bad;

    // The type of this one is of a crate behind; a certificate that `openssl req -x509` makes is so.
    let is_of_authority = |other: &rustls::OtherError| {
        let told = format!("{other:?}");
        told.contains("CaUsedAsEndEntity")
    };
    let words = [
        (
            matches!(error, Bad::UnknownIssuer),
            "nobody who is trusted here vouches for its certificate; --ca names who does",
        ),
        (
            matches!(error, Bad::BadSignature),
            "the signature of its certificate is wrong; --ca names who vouches for it",
        ),
        (matches!(error, Bad::Expired | Bad::ExpiredContext { .. }), "its certificate has expired"),
        (
            matches!(error, Bad::NotValidYet | Bad::NotValidYetContext { .. }),
            "its certificate does not hold yet",
        ),
        (
            matches!(error, Bad::NotValidForName | Bad::NotValidForNameContext { .. }),
            "its certificate is for another name than that in the address",
        ),
        (
            matches!(error, Bad::Other(other) if is_of_authority(other)),
            "its certificate is that of an authority, and not of a server",
        ),
    ];
    chosen(&words).unwrap_or_else(|| format!("its certificate cannot be taken: {error}"))
}

/// The first words that are right.
fn chosen(words: &[(bool, &str)]) -> Option<String> {
    words.iter().find(|(is_right, _)| *is_right).map(|(_, words)| (*words).to_owned())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_is_no_number_is_told_what_is_wanted() {
        let of = |text: &str| number(&text.parse::<i8>().unwrap_err());
        assert_eq!(of("x"), Some("a whole number is wanted"));
        assert_eq!((of("300"), of("-300")), (Some("it is too large"), Some("it is too small")));
        assert_eq!(number(&"x".parse::<f64>().unwrap_err()), Some("a number is wanted"));
        assert_eq!(number(&io::Error::other("x")), None);
        assert_eq!((whole("-3"), count("3"), share("0.5")), (Ok(-3), Ok(3), Ok(0.5)));
        assert_eq!(whole("x").unwrap_err(), "a whole number is wanted");
        assert!(count("-1").unwrap_err().contains("within 0 to 4294967295"));
        assert_eq!(range("70000 is not in 0..=65535"), "70000 is not within 0 to 65535");
        assert_eq!(range("it is not in order"), "it is not in order");
    }

    #[test]
    fn a_failed_exchange_names_no_library_and_no_type() {
        let certificate = TlsError::InvalidCertificate;
        let behind =
            |error: TlsError| ureq::Error::Io(io::Error::new(io::ErrorKind::InvalidData, error));
        let refused = ureq::Error::Io(io::Error::from(io::ErrorKind::ConnectionRefused));
        for (error, told) in [
            (refused, "connection refused"),
            (ureq::Error::HostNotFound, "no host of this name"),
            (ureq::Error::BadUri("x".to_owned()), "this is no address"),
            (behind(certificate(CertificateError::UnknownIssuer)), "--ca names who does"),
            (behind(certificate(CertificateError::NotValidForName)), "for another name"),
            (ureq::Error::Rustls(certificate(CertificateError::Expired)), "has expired"),
        ] {
            let words = exchange(&error);
            assert!(words.contains(told) && !words.contains("io:"), "{words}");
        }
    }
}
