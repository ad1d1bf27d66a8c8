//! Images in lists and states: goal: each is found, counted, checked and replaced, and nothing else
//! is touched. Method: states written as JSON, and laws over texts put together from pieces.

mod listed;

use proptest::prelude::*;

use crate::json::Limits;

use crate::service::images::{Format, ImageHeader};

use super::samples::{gif, jpeg, png, svg, url, webp};
use super::*;

pub(super) const DECISIO: Terms = terms(ImageRules::DECISIO);
pub(super) const ALL: Terms = terms(ImageRules::ALL);

const fn terms(rules: ImageRules) -> Terms {
    let timeout = IMAGE_FETCH_TIMEOUT;
    let fetching = ImageFetching { allow_http: false, allow_private: false, timeout };
    Terms { rules, fetching, count_max: IMAGES_MAX }
}

/// The header of an image that a request has.
pub(super) fn head(found: &Found) -> ImageHeader {
    let Found::Here(image) = found else { panic!("{found} is not here") };
    image.header
}

fn found(state: &mut Json, explicit: Option<&Json>) -> Result<Vec<ImageHeader>, ImageFault> {
    let (found, ignored) = found_after(Vec::new(), state, explicit, DECISIO)?;
    assert_eq!(ignored, [""; 0]);
    Ok(found.iter().map(head).collect())
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes(), Limits::default()).unwrap()
}

fn text(text: impl Into<String>) -> Json {
    Json::String(text.into())
}

/// The fault of a state that is this text.
fn fault(state: &str) -> String {
    found(&mut text(state), None).unwrap_err().to_string()
}

/// The fault of a list with this one element.
fn listed_fault(element: Json) -> String {
    found(&mut text("s"), Some(&Json::Array(vec![element]))).unwrap_err().to_string()
}

fn small() -> String {
    url("png", &png(3, 2))
}

#[test]
fn a_state_without_images_is_left_in_its_memory() {
    let long = "key: value, data: more; ".repeat(1_000_000);
    let place = long.as_ptr();
    let mut state = Json::Array(vec![Json::Null, json("1.50"), text(long)]);
    assert_eq!(found(&mut state, None), Ok(vec![]));
    let Json::Array(items) = &state else { panic!("{}", state.type_name()) };
    assert_eq!(items[2].as_str().map(str::as_ptr), Some(place));
}

#[test]
fn images_are_replaced_in_reading_order_at_any_depth() {
    let (first, second) = (url("png", &png(1, 2)), url("jpeg", &jpeg(3, 4)));
    let mut state = json(&format!(
        r#"{{"a": {{"list": [0, "one {first} here", true]}}, "b": null, "c": "{second}"}}"#
    ));
    let images = found(&mut state, None).unwrap();
    let expected = r#"{"a":{"list":[0,"one [image 1] here",true]},"b":null,"c":"[image 2]"}"#;
    assert_eq!(state.compact(), expected);
    let sizes: Vec<_> = images.iter().map(|i| (i.format, i.width, i.height)).collect();
    assert_eq!(sizes, [(Format::Png, 1, 2), (Format::Jpeg, 3, 4)]);
    assert_eq!(images[0].bytes, png(1, 2).len());
}

#[test]
fn listed_images_come_before_those_of_the_state() {
    let mut state = text(format!("<{}>", url("webp", &webp("VP8X", 5, 6))));
    let list = Json::Array(vec![text(small())]);
    let images = found(&mut state, Some(&list)).unwrap();
    assert_eq!(state, text("<[image 2]>"));
    assert_eq!((images[0].format, images[1].format), (Format::Png, Format::WebP));
}

#[test]
fn images_of_a_form_come_first() {
    let header =
        ImageHeader { format: Format::Jpeg, width: 1, height: 1, orientation: 1, bytes: 9 };
    let file = Image { header, file: vec![7; 9].into(), name: None, description: None };
    let given = Found::Here(file);
    let mut state = text(small());
    let (images, _) = found_after(vec![given.clone()], &mut state, None, DECISIO).unwrap();
    assert_eq!((state, &images[0]), (text("[image 2]"), &given));
}

#[test]
fn two_urls_with_nothing_between_them_are_two() {
    for file in [png(3, 2), webp("VP8 ", 3, 2)] {
        let pair = format!("{0}{0}", url("x", &file));
        let mut state = text(pair);
        assert_eq!(found(&mut state, None).unwrap().len(), 2, "{} bytes", file.len());
        assert_eq!(state, text("[image 1][image 2]"));
    }
}

#[test]
fn a_url_ends_where_its_data_do() {
    for (before, after) in
        [("![x](", ")"), ("\"", "\""), ("url(", ");"), ("", "\nnext"), ("\u{e9}", "\u{e9}")]
    {
        let mut state = text(format!("{before}{}{after}", small()));
        assert_eq!(found(&mut state, None).map(|images| images.len()), Ok(1));
        assert_eq!(state, text(format!("{before}[image 1]{after}")));
    }
}

#[test]
fn parameters_and_case_of_a_url_do_not_matter() {
    let data = small().split_once(',').unwrap().1.to_owned();
    for head in ["DATA:Image/PNG;Base64", "data:image/png;name=a.png; base64", "data:image/;base64"]
    {
        let url = format!("{head},{data}");
        assert_eq!(found(&mut text(&url), None).map(|images| images.len()), Ok(1), "{head}");
        let list = Json::Array(vec![text(&url)]);
        assert_eq!(found(&mut text(""), Some(&list)).map(|i| i.len()), Ok(1), "{head}");
    }
}

#[test]
fn a_mention_of_data_urls_stays_text() {
    for mention in [
        "a data:image/png URI, or two",
        "data:image/",
        "send data:image/png;base64,<data> or data:image/png;base64, please",
        "data:image/png, data:image/jpeg",
        "data:image/ is how one begins; base64,then, follows",
        "data:text/plain;base64,aGVsbG8=",
        "metadata: image/png;base64,AAAA",
        ":data:image",
    ] {
        let mut state = text(mention);
        assert_eq!(found(&mut state, None), Ok(vec![]), "{mention}");
        assert_eq!(state, text(mention));
    }
}

#[test]
fn keys_are_left_alone() {
    let mut state = Json::Object(vec![(small(), Json::Null)]);
    let before = state.clone();
    assert_eq!((found(&mut state, None), state), (Ok(vec![]), before));
}

#[test]
fn at_most_two_images_are_accepted() {
    let expected = Err(ImageFault::TooMany { count_max: 2 });
    let (two, three) = ([small(), small()].join(" "), [small(), small(), small()].join(" "));
    assert_eq!(found(&mut text(&two), None).map(|images| images.len()), Ok(2));
    assert_eq!(found(&mut text(three), None), expected);
    let list = Json::Array(vec![text(small())]);
    assert_eq!(found(&mut text(two), Some(&list)), expected);
    let list = Json::Array(vec![text(small()); 3]);
    assert_eq!(found(&mut text(""), Some(&list)), expected);
}

#[test]
fn a_third_image_is_not_read() {
    let state = [small(), small(), "data:image/png;base64,damaged".to_owned()].join(" ");
    assert_eq!(fault(&state), "too many images: more than 2 in the request");
}

#[test]
fn images_is_a_list_or_null() {
    assert_eq!(found(&mut text(""), Some(&Json::Null)), Ok(vec![]));
    assert_eq!(found(&mut text(""), Some(&json("[]"))), Ok(vec![]));
    let fault = found(&mut text(""), Some(&text(small()))).unwrap_err();
    assert_eq!(fault.to_string(), "images must be a list of images, found a string");
    assert_eq!(
        listed_fault(json("7")),
        "bad image: image 1 (images[0]) must be a data URL, found a number"
    );
}

#[test]
fn only_data_urls_with_base64_are_listed() {
    let other = listed_fault(text("https://example.com/cat.png"));
    assert!(
        other.ends_with("found one that begins with \"https://example.com/cat.png\""),
        "{other}"
    );
    assert!(listed_fault(text("data:text/plain;base64,AAAA")).contains("begins with"));
    assert!(listed_fault(text(format!(" {}", small()))).contains("begins with"));
    let percent = "data:image/svg+xml,%3Csvg%2F%3E";
    assert!(listed_fault(text(percent)).contains("without base64"));
    assert!(listed_fault(text("data:image/png;base64,")).ends_with("is empty"));
}

#[test]
fn a_percent_encoded_url_in_the_state_is_refused() {
    for url in ["data:image/svg+xml,%3Csvg%2F%3E", "data:image/svg+xml;utf8,<svg/>"] {
        let expected = "bad image: image 1 (state) is a data URL without base64, \
                        expected data:image/TYPE;base64,DATA";
        assert_eq!(fault(&format!("icon {url}")), expected);
    }
}

#[test]
fn damaged_base64_is_refused_with_its_place() {
    let good = small();
    let spaced = format!("{}\n{}", &good[..40], &good[40..]);
    assert!(listed_fault(text(spaced)).contains("is not valid base64: '\\n' at byte 18"));
    let escaped = format!("{}%2B{}", &good[..40], &good[41..]);
    assert!(listed_fault(text(&escaped)).contains("'%' at byte 18"));
    assert!(fault(&escaped).contains("'%' at byte 18"));
    let safe = format!("{}_{}", &good[..40], &good[41..]);
    assert!(fault(&safe).contains("'_' at byte 18"));
    assert!(fault(&good[..good.len() - 1]).contains("cut off or not padded"));
    assert!(fault("data:image/png;base64,AB==").contains("bits that belong to no byte"));
    assert!(fault("data:image/png;base64,AAAA====").contains("is not valid base64"));
}

#[test]
fn magic_bytes_decide_and_not_the_type_in_the_url() {
    let mut state = text(url("png", &jpeg(3, 4)));
    assert_eq!(found(&mut state, None).unwrap()[0].format, Format::Jpeg);
    for (kind, file) in [("png", gif()), ("gif", gif()), ("svg+xml", svg()), ("png", svg())] {
        assert!(fault(&url(kind, &file)).contains("is not a PNG, JPEG or WebP file"), "{kind}");
    }
}

#[test]
fn a_fault_names_image_and_place() {
    let bad = url("png", &png(100_000, 100_000));
    let mut state = json(&format!(r#"{{"pages": [["{}"], {{"x y": "{bad}"}}]}}"#, small()));
    let fault = found(&mut state, None).unwrap_err();
    let expected = "bad image: image 2 (state.pages[1].x y) is 100000 x 100000 pixels, \
                    at most 20000000 in all are accepted";
    assert_eq!(fault.to_string(), expected);
    let path: [Step; 4] = ["state".into(), "pages".into(), 1.into(), "x y".into()];
    assert_eq!(fault.path(), path);
}

#[test]
fn a_fault_does_not_grow_with_what_was_sent() {
    let key = "\u{e9}".repeat(100_000);
    let deep = Json::Object(vec![(key, text("data:image/png;base64,%"))]);
    let mut state = Json::Array(vec![deep]);
    let fault = found(&mut state, None).unwrap_err().to_string();
    let cut = "\u{e9}".repeat(100 - "state[0].".len());
    assert!(fault.contains(&format!("(state[0].{cut}...) is not valid base64")), "{fault}");
    assert!(listed_fault(text("\u{e9}".repeat(100_000))).len() < 500);
}

#[test]
fn the_largest_file_is_read_and_one_byte_more_is_not() {
    let mut file = png(1, 1);
    file.resize(IMAGE_BYTES_MAX, 7);
    let images = found(&mut text(url("png", &file)), None).unwrap();
    assert_eq!(images[0].bytes, IMAGE_BYTES_MAX);
    file.push(7);
    assert!(
        fault(&url("png", &file)).ends_with("is 20971521 bytes, at most 20971520 are accepted")
    );
}

fn piece() -> impl Strategy<Value = String> {
    let fragments = [
        "data:",
        "image/",
        "png",
        ";base64",
        ",",
        "data:image/png;base64,",
        "AAAA",
        "iVBORw0KGgo=",
        "=",
        "%2F",
        ":",
        " ",
        "\u{e9}",
        "<svg>",
        "DATA:image/",
        "base64",
    ];
    prop::sample::select(fragments.map(str::to_owned).to_vec())
}

proptest! {
    /// Whatever stands around and between images stays as it is.
    #[test]
    fn only_images_are_replaced(
        texts in prop::collection::vec("[ -9;-~\u{e9}\n]{0,20}", 3),
        sides in prop::collection::vec((1u16..2000, 1u16..2000), 2),
        as_png in any::<bool>(),
    ) {
        let image = |(width, height): (u16, u16)| {
            if as_png { url("png", &png(width.into(), height.into())) } else { url("j", &jpeg(width, height)) }
        };
        // A space ends the data, whatever the text begins with.
        let (first, second) = (image(sides[0]), image(sides[1]));
        let whole = format!("{}{first} {}{second} {}", texts[0], texts[1], texts[2]);
        let mut state = text(whole);
        let images = found(&mut state, None).unwrap();
        let expected = format!("{}[image 1] {}[image 2] {}", texts[0], texts[1], texts[2]);
        prop_assert_eq!(state, text(expected));
        let found: Vec<(u32, u32)> = images.iter().map(|i| (i.width, i.height)).collect();
        let sent: Vec<(u32, u32)> = sides.iter().map(|(w, h)| ((*w).into(), (*h).into())).collect();
        prop_assert_eq!(found, sent);
    }

    #[test]
    fn pieces_of_urls_in_any_order_are_text_or_a_fault(pieces in prop::collection::vec(piece(), 0..24)) {
        let before = text(pieces.concat());
        let mut state = before.clone();
        if found(&mut state, None) == Ok(vec![]) {
            prop_assert_eq!(state, before);
        }
    }
}
