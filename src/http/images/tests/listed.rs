//! Lists of images where all forms are taken: URLs to be fetched, objects, both alphabets, types that
//! must agree.

use super::super::samples::{gif, jpeg, png, url};
use super::*;
use crate::dialect::problem::ImageRefusalKind as Kind;

/// What the list `images` of this text is where all forms are taken.
fn all(list: &str) -> Result<(Vec<Found>, Vec<String>), ImageFault> {
    found_after(Vec::new(), &mut text("s"), Some(&json(list)), ALL)
}

/// The fault of such a list.
fn all_fault(list: &str) -> String {
    all(list).unwrap_err().to_string()
}

#[test]
fn urls_and_objects_are_listed_where_all_forms_are_taken() {
    let list = format!(
        r#"["https://example.com/a.png?key=1",
            {{"url": "{}", "name": "n", "description": "d", "detail": 1, "x": null}}]"#,
        small()
    );
    let (images, ignored) = all(&list).unwrap();
    let Found::There(0, remote) = &images[0] else { panic!("{images:?}") };
    assert_eq!((remote.url.as_str(), &remote.name), ("https://example.com/a.png?key=1", &None));
    let Found::Here(image) = &images[1] else { panic!("{images:?}") };
    assert_eq!((image.name.as_deref(), image.description.as_deref()), (Some("n"), Some("d")));
    assert_eq!((&image.file[..], image.header.bytes), (&png(3, 2)[..], png(3, 2).len()));
    assert_eq!(ignored, ["images.1.detail", "images.1.x"]);
    let (images, _) = all(r#"[{"url": "https://example.com/", "name": null}]"#).unwrap();
    assert_eq!(images[0].to_string(), "one of https://example.com");
}

#[test]
fn an_element_of_another_form_is_refused() {
    for (list, expected) in [
        ("[7]", "must be a URL or an object that has one, found a number"),
        ("[null]", "must be a URL or an object that has one, found null"),
        ("[{}]", "has no url, which is required"),
        (r#"[{"url": null}]"#, "has no url, which is required"),
        (r#"[{"url": 7}]"#, "has a url that is a number, expected a string"),
        (
            r#"[{"url": "https://a.b/", "name": []}]"#,
            "has a name that is an array, expected a string",
        ),
        (r#"[{"url": "https://a.b/", "description": 1}]"#, "has a description that is a number"),
        (r#"["data:text/plain;base64,AAAA"]"#, "must be a URL data:image/TYPE;base64,DATA"),
        (r#"["data:image/png,AAAA"]"#, "is a data URL without base64"),
    ] {
        let fault = all_fault(list);
        assert!(
            fault.starts_with(&format!("bad image: image 1 (images[0]) {expected}")),
            "{fault}"
        );
    }
}

#[test]
fn case_53_a_url_that_is_not_fetched_is_refused_with_its_place() {
    for (url, expected) in [
        ("http://127.0.0.1/", "is a URL of the scheme http, expected https"),
        ("https://2130706433/", "is a URL whose host is not public"),
        ("https://[::ffff:10.0.0.1]/", "is a URL whose host is not public"),
        ("file:///etc/passwd", "is a URL of the scheme file, expected https"),
        ("/etc/passwd", "is no URL that can be fetched, expected https://"),
        ("ftp://example.com/", "is a URL of the scheme ftp, expected https"),
        ("https://user:secret@example.com/", "is a URL with credentials"),
    ] {
        for element in [format!("\"{url}\""), format!(r#"{{"url": "{url}"}}"#)] {
            let fault = all_fault(&format!("[{element}]"));
            assert!(
                fault.starts_with(&format!("bad image: image 1 (images[0]) {expected}")),
                "{fault}"
            );
            assert!(!fault.contains("secret") && !fault.contains("passwd"), "{fault}");
        }
    }
}

#[test]
fn no_secret_of_a_url_is_repeated() {
    for url in
        ["https://user:secret@example.com/a.png", "https://example.com/?key=secret", "x@y:secret"]
    {
        assert!(!listed_fault(text(url)).contains("secret"), "{url}");
    }
}

#[test]
fn images_are_counted_before_urls_are_looked_at() {
    let expected = Err(ImageFault::TooMany { count_max: 2 });
    assert_eq!(all(r#"["https://a.b/", "https://a.b/", "ftp://a.b/"]"#), expected);
}

#[test]
fn both_alphabets_of_base64_are_read_where_all_forms_are_taken() {
    let mut file = png(3, 2);
    file.extend([0xfb, 0xff, 0xfe, 0xfa]);
    let standard = url("png", &file);
    let safe = standard.replace('+', "-").replace('/', "_").replacen("image_", "image/", 1);
    assert!(standard != safe && safe.contains('-') && safe.contains('_'), "{safe}");
    for url in [standard.as_str(), safe.as_str(), safe.trim_end_matches('=')] {
        let (images, _) = all(&format!("[\"{url}\"]")).unwrap();
        assert_eq!(head(&images[0]).bytes, file.len());
        let mut state = text(url);
        assert!(found_after(vec![], &mut state, None, ALL).is_ok());
        assert_eq!(state, text("[image 1]"));
    }
    let mixed = safe.replacen('-', "+", 1);
    assert!(all_fault(&format!("[\"{mixed}\"]")).contains("is not valid base64"));
    assert!(listed_fault(text(safe)).contains("is not valid base64"));
}

#[test]
fn a_data_url_that_is_declared_as_another_is_refused_where_all_forms_are_taken() {
    let fault = all_fault(&format!("[\"{}\"]", url("png", &jpeg(3, 4))));
    assert!(
        fault.ends_with("is declared as image/png, but its first bytes are those of a JPEG file")
    );
    assert!(all(&format!("[\"{}\"]", url("jpg;x=y", &jpeg(3, 4)))).is_ok());
}

#[test]
fn data_urls_in_a_state_stay_text_where_they_are_no_images() {
    let rules = ImageRules { in_state: false, ..ImageRules::ALL };
    let mut state = text(small());
    let found = found_after(vec![], &mut state, None, Terms { rules, ..ALL });
    assert_eq!((found, state), (Ok((vec![], vec![])), text(small())));
}

#[test]
fn faults_are_of_kinds() {
    let kind = |list: String| all(&list).unwrap_err().refusal().kind;
    assert_eq!(kind("[7]".to_owned()), Kind::Form);
    assert_eq!(kind("7".to_owned()), Kind::Form);
    assert_eq!(kind("[\"ftp://a.b/\"]".to_owned()), Kind::Unsupported);
    assert_eq!(kind(format!("[\"{}\"]", url("png", &gif()))), Kind::Unsupported);
    assert_eq!(kind(format!("[\"{}\"]", url("png", &png(40_000, 40_000)))), Kind::TooLarge);
    assert_eq!(kind(format!("[{0}, {0}, {0}]", format_args!("\"{}\"", small()))), Kind::Count);
}
