//! Multipart forms: goal: request and images come out as they were sent, whatever else is refused
//! with its part. Method: forms written byte by byte, as clients write them.

use futures_util::FutureExt as _;
use proptest::prelude::*;

use super::super::samples::{gif, jpeg, png};
use super::*;

const TYPE: &str = "multipart/form-data; boundary=XyZ";

/// A part without file name.
fn field(name: &str, content: &[u8]) -> Vec<u8> {
    part(&format!("form-data; name=\"{name}\""), content)
}

/// A part with file name, as clients send it.
fn file(name: &str, content: &[u8]) -> Vec<u8> {
    let disposition = format!("form-data; name=\"{name}\"; filename=\"a.bin\"");
    part(&format!("{disposition}\r\nContent-Type: application/octet-stream"), content)
}

fn part(disposition: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--XyZ\r\nContent-Disposition: {disposition}\r\n\r\n");
    [head.as_bytes(), content, b"\r\n"].concat()
}

fn body(parts: &[Vec<u8>]) -> Vec<u8> {
    [&parts.concat()[..], b"--XyZ--\r\n"].concat()
}

fn read_as(content_type: &str, body: Vec<u8>) -> Result<Form, ImageFault> {
    multipart(content_type, body.into(), super::super::tests::DECISIO)
        .now_or_never()
        .expect("it never waits")
}

/// Sides and length of each image.
fn sizes(form: &Form) -> Vec<(u32, u32, usize)> {
    let heads = form.images.iter().map(super::super::tests::head);
    heads.map(|head| (head.width, head.height, head.bytes)).collect()
}

fn read(parts: &[Vec<u8>]) -> Result<Form, ImageFault> {
    read_as(TYPE, body(parts))
}

fn fault(parts: &[Vec<u8>]) -> String {
    read(parts).unwrap_err().to_string()
}

fn request() -> Vec<u8> {
    field("request", b"{}")
}

#[test]
fn request_and_files_come_out_as_sent() {
    let json = br#"{"state": "--XyZ"}"#;
    let parts = [file("image", &png(3, 2)), field("request", json), file("images", &jpeg(5, 4))];
    let form = read(&parts).unwrap();
    assert_eq!(&form.request[..], json);
    assert_eq!(sizes(&form), [(3, 2, png(3, 2).len()), (5, 4, jpeg(5, 4).len())]);
}

#[test]
fn the_request_may_be_a_file() {
    let form = read(&[file("request", b"[1]")]).unwrap();
    assert_eq!((&form.request[..], form.images), (&b"[1]"[..], vec![]));
}

#[test]
fn every_file_but_the_request_is_an_image() {
    for name in ["image", "images", "image[]", "asset-0", "picture", ""] {
        let form = read(&[request(), file(name, &png(1, 1))]).unwrap();
        assert_eq!(form.images.len(), 1, "{name}");
    }
}

#[test]
fn the_assets_of_the_official_client_are_images_in_their_order() {
    let files = [file("asset-0", &png(3, 2)), file("asset-1", &jpeg(5, 4))];
    let form = read(&[request(), files[0].clone(), files[1].clone()]).unwrap();
    assert_eq!(sizes(&form), [(3, 2, png(3, 2).len()), (5, 4, jpeg(5, 4).len())]);
}

#[test]
fn a_file_that_is_declared_as_another_is_refused_where_types_are_looked_at() {
    let disposition = "form-data; name=\"asset-0\"; filename=\"a\"\r\nContent-Type: image/png";
    let whole = body(&[request(), part(disposition, &jpeg(5, 4))]);
    let all = multipart(TYPE, whole.clone().into(), super::super::tests::ALL).now_or_never();
    let expected = "bad image: image 1 (asset-0) is declared as image/png, but its first bytes are \
                    those of a JPEG file";
    assert_eq!(all.unwrap().unwrap_err().to_string(), expected);
    assert_eq!(read_as(TYPE, whole).map(|form| form.images.len()), Ok(1));
}

#[test]
fn other_text_fields_are_ignored() {
    let nameless = part("form-data", b"x");
    for extra in [field("token", b"x"), field("asset-0", &gif()), nameless] {
        assert_eq!(read(&[extra, request()]).map(|form| form.request.len()), Ok(2));
    }
}

#[test]
fn a_text_field_is_no_image() {
    let expected =
        "bad image: image 1 (image[]) is a text field, expected a file (with a filename)";
    assert_eq!(fault(&[request(), field("image[]", b"data:image/png;base64,AAAA")]), expected);
}

#[test]
fn a_file_name_in_the_forbidden_encoding_is_one() {
    let disposition = "form-data; name=\"image\"; filename*=UTF-8''a%20b.png";
    assert_eq!(read(&[request(), part(disposition, &png(1, 1))]).unwrap().images.len(), 1);
}

#[test]
fn a_bad_file_is_refused_with_its_number() {
    let parts = [file("image", &png(1, 1)), file("images", &gif())];
    assert!(fault(&parts).starts_with("bad image: image 2 (images) is not a PNG, JPEG or WebP"));
    assert_eq!(fault(&[file("image", b"")]), "bad image: image 1 (image) is empty");
    let large = png(100_000, 100_000);
    assert!(fault(&[file("image", &large)]).contains("100000 x 100000 pixels"));
}

#[test]
fn a_file_may_have_twenty_mebibytes() {
    let mut large = png(1, 1);
    large.resize(20 << 20, b'\r');
    assert_eq!(sizes(&read(&[request(), file("image", &large)]).unwrap())[0].2, 20 << 20);
    large.push(b'\r');
    let expected = "bad image: image 1 (image) is 20971521 bytes, at most 20971520 are accepted";
    assert_eq!(fault(&[request(), file("image", &large)]), expected);
}

#[test]
fn a_third_image_is_refused() {
    let image = file("image", &png(1, 1));
    assert_eq!(read(&[request(), image.clone(), image.clone()]).unwrap().images.len(), 2);
    let expected = "too many images: more than 2 in the request";
    assert_eq!(fault(&[image.clone(), image.clone(), image]), expected);
}

#[test]
fn there_is_one_request() {
    let missing = "bad form: the field request is missing, expected the JSON body there";
    assert_eq!(fault(&[file("image", &png(1, 1))]), missing);
    assert_eq!(fault(&[]), missing);
    assert_eq!(fault(&[request(), request()]), "bad form: part 2 is a second field request");
    let twice = [field("request", b""), field("request", b"{}")];
    assert_eq!(fault(&twice), "bad form: part 2 is a second field request");
}

#[test]
fn parts_are_counted_up_to_the_limit() {
    let parts = |count: usize| [vec![request()], vec![field("x", b"y"); count - 1]].concat();
    assert_eq!(read(&parts(32)).map(|form| form.request.len()), Ok(2));
    assert_eq!(fault(&parts(33)), "bad form: more than 32 parts");
    assert_eq!(fault(&parts(1000)), "bad form: more than 32 parts");
}

#[test]
fn headers_of_a_part_are_read_up_to_the_limit() {
    let named = |length: usize| {
        let start = "Content-Disposition: form-data; name=request; filename=\r\n\r\n".len();
        let name = "n".repeat(length - start);
        part(&format!("form-data; name=request; filename={name}"), b"{}")
    };
    assert!(read(&[named(PART_HEAD_BYTES_MAX)]).is_ok());
    let expected = "bad form: the headers of part 1 are longer than 8192 bytes";
    assert_eq!(fault(&[named(PART_HEAD_BYTES_MAX + 1)]), expected);
    let many = "X-Y: z\r\n".repeat(1000);
    let crowded = format!("form-data; name=\"request\"\r\n{}", many.trim_end());
    assert!(fault(&[part(&crowded, b"{}")]).contains("part 1"));
}

#[test]
fn a_broken_form_is_refused_with_its_part() {
    let whole = body(&[request(), file("image", &png(1, 1))]);
    let cut = |bytes: &[u8]| read_as(TYPE, bytes.to_vec()).unwrap_err().to_string();
    let broken = "is broken or the closing boundary is missing";
    assert_eq!(cut(&whole[..whole.len() - 4]), format!("bad form: part 3 {broken}"));
    assert_eq!(cut(&whole[..whole.len() - 11]), format!("bad form: part 2 {broken}"));
    assert_eq!(cut(b""), format!("bad form: part 1 {broken}"));
    assert_eq!(cut(b"{}"), format!("bad form: part 1 {broken}"));
    assert_eq!(
        cut(b"--XyZ\r\nno header\r\n\r\nx\r\n--XyZ--"),
        format!("bad form: part 1 {broken}")
    );
    let other = read_as("multipart/form-data; boundary=other", whole).unwrap_err();
    assert_eq!(other.to_string(), format!("bad form: part 1 {broken}"));
}

#[test]
fn text_around_the_parts_is_skipped() {
    let whole = [b"preamble\r\n", &body(&[request()])[..], b"epilogue"].concat();
    assert_eq!(read_as(TYPE, whole).map(|form| form.request.len()), Ok(2));
}

#[test]
fn the_content_type_names_a_boundary() {
    let quoted = "Multipart/Form-Data; charset=utf-8; boundary=\"XyZ\"";
    assert!(read_as(quoted, body(&[request()])).is_ok());
    let long = format!("multipart/form-data; boundary={}", "b".repeat(71));
    let none =
        ["multipart/form-data", "multipart/mixed; boundary=XyZ", "application/json", "", "\u{e9}"];
    let empty = "multipart/form-data; boundary=\"\"";
    for content_type in none.into_iter().chain([empty, long.as_str()]) {
        let fault = read_as(content_type, body(&[request()])).unwrap_err().to_string();
        assert!(fault.ends_with("with a boundary of 1 to 70 characters"), "{fault}");
    }
    let longest = "b".repeat(70);
    let body = format!(
        "--{longest}\r\nContent-Disposition: form-data; name=request\r\n\r\n{{}}\r\n--{longest}--"
    );
    assert!(read_as(&format!("multipart/form-data; boundary={longest}"), body.into()).is_ok());
}

proptest! {
    #[test]
    fn any_content_comes_out_as_sent(
        before in prop::collection::vec(any::<u8>(), 0..50),
        json in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let form = read(&[field("x", &before), field("request", &json)]).unwrap();
        prop_assert_eq!(&form.request[..], &json[..]);
    }

    #[test]
    fn damaged_forms_are_read_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = body(&[request(), file("image", &png(1, 1)), field("x", b"y")]);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(length.index(bytes.len() + 1));
        if let Ok(form) = read_as(TYPE, bytes) {
            prop_assert!(form.images.len() <= 1);
        }
    }
}
