//! Forms: the shape in which a case's sentences become a state (a note, a mail, a chat, log lines, a
//! JSON record, ...).

use docket::json::Json;

use crate::random::Random;
use crate::slots::Slots;

/// What a state is made of.
#[derive(Debug)]
pub(crate) struct Body {
    /// Subject line; may be empty.
    pub(crate) subject: String,
    /// Opening, middle sentences and closing, in order.
    pub(crate) sentences: Vec<String>,
}

/// Renders `body` in the form that the theme file calls `form`.
#[expect(clippy::panic, reason = "the files are compiled in; an unknown form is a bug of ours")]
pub(crate) fn render(form: &str, body: &Body, slots: &Slots, random: &mut Random) -> Json {
    match form {
        "note" => Json::String(body.sentences.join(" ")),
        "mail" => Json::String(mail(body, slots)),
        "chat" => Json::String(chat(body, slots, random)),
        "log" => Json::String(log(body, random)),
        "review" => Json::String(format!("{}\n{}", body.subject, body.sentences.join(" "))),
        "ticket" => ticket(body, slots, random),
        "order" => record(body, slots),
        _ => panic!("unknown form {form:?}"),
    }
}

fn mail(body: &Body, slots: &Slots) -> String {
    let (last, others) = body.sentences.split_last().map_or(("", &[][..]), |(l, o)| (l, o));
    let from = format!("From: {} {}", slots.value("writer"), slots.value("surname"));
    format!("{from}\nSubject: {}\n\n{}\n\n{last}", body.subject, others.join(" "))
}

fn chat(body: &Body, slots: &Slots, random: &mut Random) -> String {
    let replies = ["I see.", "Go on, please.", "One moment.", "Thank you for telling us."];
    let writer = slots.value("writer");
    let mut lines = Vec::new();
    for (number, sentence) in body.sentences.iter().enumerate() {
        lines.push(format!("{writer}: {sentence}"));
        if number == 0 {
            lines.push(format!("Desk: {}", random.pick(&replies)));
        }
    }
    lines.join("\n")
}

fn log(body: &Body, random: &mut Random) -> String {
    let mut second = random.below(20_000);
    let mut lines = Vec::new();
    for sentence in &body.sentences {
        second += 1 + random.below(900);
        let (hour, minute) = (1 + second / 3600, second / 60 % 60);
        lines.push(format!("{hour:02}:{minute:02}:{:02} {sentence}", second % 60));
    }
    lines.join("\n")
}

fn ticket(body: &Body, slots: &Slots, random: &mut Random) -> Json {
    let channel = *random.pick(&["mail", "web", "phone"]);
    object(&[
        ("id", Json::Number(slots.value("id").to_owned())),
        ("channel", Json::String(channel.to_owned())),
        ("from", Json::String(slots.value("writer").to_owned())),
        ("subject", Json::String(body.subject.clone())),
        ("text", Json::String(body.sentences.join(" "))),
    ])
}

fn record(body: &Body, slots: &Slots) -> Json {
    let entered = object(&[
        ("by", Json::String(slots.value("writer").to_owned())),
        ("time", Json::String(slots.value("hour").to_owned())),
    ]);
    object(&[
        ("record", Json::Number(slots.value("id").to_owned())),
        ("article", Json::String(slots.value("item").to_owned())),
        ("entered", entered),
        ("notes", Json::Array(body.sentences.iter().cloned().map(Json::String).collect())),
    ])
}

fn object(members: &[(&str, Json)]) -> Json {
    Json::Object(members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}
