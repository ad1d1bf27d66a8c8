//! Layouts composed of decisio's settings: against its recorded renderings, and as whole prompts.

use serde_json::Value;

use super::*;
use crate::prompt::layout::letters::{
    AnswerSlot, LettersSettings, NoulRendering, PromptTail, letters,
};
use crate::prompt::options::shown as shown_options;
use crate::prompt::wording::instructions_text;
use crate::prompt::{identity, labels};

const RECORDED: &str = include_str!("../../../tests/conformance/data/decisio.json");

/// The questions behind the recorded renderings: name, and a request's question.
const QUESTIONS: [(&str, &str); 10] = [
    (
        "choice_bare",
        r#"{"type":"choice","criteria":{"billing":null,"card_arrival":null,"Refund_not_x":null}}"#,
    ),
    (
        "choice_desc",
        r#"{"type":"choice","instructions":" Which? ","criteria":{"billing":"Money","access":"Login"}}"#,
    ),
    (
        "choice_mixed",
        r#"{"type":"choice","criteria":{"low_prio":null,"medium":"Degraded","high":{"examples":["outage"]}}}"#,
    ),
    ("choice_dup_desc", r#"{"type":"choice","criteria":{"a":"Same","b":"Same"}}"#),
    (
        "choice_index",
        r#"{"type":"choice","criteria":{"option_0":"card_arrival","option_1":"top up"}}"#,
    ),
    ("choice_sku", r#"{"type":"choice","criteria":{"sku_12":"Red","sku_14":"Blue"}}"#),
    ("noul_plain", r#"{"type":"noul","instructions":"Late?"}"#),
    ("noul_none", r#"{"type":"noul"}"#),
    (
        "noul_crit",
        r#"{"type":"noul","instructions":"Refund?","criteria":{"true":"Money back","false":"Else"}}"#,
    ),
    ("score", r#"{"type":"score","instructions":{"a":1},"criteria":["low",{"x":2}]}"#),
];

/// A question from a request's.
fn sent(text: &str) -> Question {
    let json = Json::parse(text.as_bytes(), crate::json::Limits::default()).unwrap();
    let given = |json: Option<&Json>| json.filter(|json| **json != Json::Null).cloned();
    let kind = match (json.get("type").and_then(Json::as_str), json.get("criteria")) {
        (Some("choice"), Some(Json::Object(members))) => {
            let option = |(key, text): &(String, Json)| ChoiceOption {
                key: key.clone(),
                description: given(Some(text)),
            };
            Kind::Choice { options: members.iter().map(option).collect() }
        }
        (Some("score"), Some(Json::Array(levels))) => Kind::Score { levels: levels.clone() },
        (_, criteria) => {
            let side = |name| criteria.and_then(|json| given(json.get(name)));
            Kind::Noul { when_true: side("true"), when_false: side("false") }
        }
    };
    question(kind, given(json.get("instructions")))
}

fn recorded() -> Value {
    serde_json::from_str(RECORDED).unwrap()
}

/// Calls `check` with each recorded rendering, its name and the question behind it.
fn each_rendering(check: impl Fn(&str, &Value, &Question)) {
    let recorded = &recorded()["render"];
    assert_eq!(recorded.as_object().unwrap().len(), QUESTIONS.len());
    for (name, text) in QUESTIONS {
        check(name, &recorded[name], &sent(text));
    }
}

/// Holds a question against `[{kind, instructions, options?}, keys]`.
fn assert_shown(settings: LettersSettings, question: &Question, recorded: &Value, what: &str) {
    let layout = letters(&settings);
    let options = &recorded[0]["options"];
    let expected: Vec<&str> =
        options.as_array().iter().flat_map(|o| o.iter()).map(|o| o.as_str().unwrap()).collect();
    assert_eq!(shown_options(layout, &question.kind), expected, "{what}");
    assert_eq!(instructions_text(layout, question), recorded[0]["instructions"], "{what}");
}

const WORDS: LettersSettings = LettersSettings {
    noul_rendering: NoulRendering::Words,
    hide_index_keys: true,
    describe_options: true,
    desnake_labels: true,
    prompt_tail: PromptTail::Spaced,
    answer_slot: AnswerSlot::Template,
    system_prompt: true,
};

#[test]
fn questions_are_shown_as_recorded() {
    each_rendering(|name, recorded, question| {
        assert_shown(WORDS, question, &recorded["default"], name);
        // Recorded with the three rules of keys as they are, but for the one that is named.
        let undescribed =
            LettersSettings { describe_options: false, desnake_labels: true, ..WORDS };
        assert_shown(undescribed, question, &recorded["no_describe"], name);
    });
}

#[test]
fn nouls_by_letters_are_shown_as_recorded() {
    each_rendering(|name, recorded, question| {
        let by = |noul_rendering| LettersSettings { noul_rendering, ..WORDS };
        let styles =
            [("letters", NoulRendering::Letters), ("letters_keys", NoulRendering::LettersKeys)];
        for (style, rendering) in styles {
            if let Some(recorded) = recorded.get(style) {
                assert_shown(by(rendering), question, recorded, name);
            }
        }
    });
}

#[test]
fn identities_are_the_recorded_ones() {
    each_rendering(|name, recorded, question| {
        let described = Some(identity::DESCRIBED);
        assert_eq!(identity::task_key_in(None, question), recorded["task_key"], "{name}");
        let key = identity::task_key_in(described, question);
        assert_eq!(key, recorded["task_key_described"], "{name}");
        let set = identity::option_set_in(None, &question.kind);
        assert_eq!(set, recorded["option_set"], "{name}");
        assert_eq!(identity::option_keys(&question.kind), recorded["option_keys"], "{name}");
    });
}

#[test]
fn a_task_key_has_the_rendering_that_changes_a_question_and_no_other() {
    let spaced = letters(&LettersSettings::default());
    let kept = LettersSettings { describe_options: false, ..LettersSettings::default() };
    each_rendering(|name, recorded, question| {
        let is_changed = ["choice_desc", "choice_mixed", "choice_sku"].contains(&name);
        let which = if is_changed { "task_key_described" } else { "task_key" };
        if name.starts_with("noul") {
            let by_letters = identity::task_key_in(Some("letters"), question);
            assert_eq!(identity::task_key(spaced, question), by_letters);
            assert_eq!(identity::task_key(letters(&WORDS), question), recorded["task_key"]);
        } else {
            assert_eq!(identity::task_key(spaced, question), recorded[which], "{name}");
            assert_eq!(identity::task_key(letters(&kept), question), recorded["task_key"]);
        }
        let set = identity::option_set(spaced, &question.kind);
        assert_eq!(set == recorded["option_set"], !is_changed, "{name}");
    });
    let alike = alike();
    assert_eq!(identity::rendering(spaced, &alike.kind), None, "asked by words");
}

#[test]
fn label_candidates_are_the_recorded_ones() {
    let codes: Vec<String> = labels::candidates(labels::CodeSet::Capitals).take(40).collect();
    assert_eq!(Value::from(codes), recorded()["label_candidates_first40"]);
}

/// A noul whose sides read the same.
fn alike() -> Question {
    let x = Some(string("x"));
    question(Kind::Noul { when_true: x.clone(), when_false: x }, Some(string("Late?")))
}

/// The user's turn.
fn turn(settings: LettersSettings, state: &Json, question: &Question, order: &[usize]) -> String {
    let settings = LettersSettings { system_prompt: false, ..settings };
    let text = rendered(&prompter(letters(&settings)), state, question, order);
    let (turn, end) = text.split_at(text.find("<|im_end|>").unwrap());
    assert_eq!(end, "<|im_end|>\n<|im_start|>assistant\n");
    turn.strip_prefix("<|im_start|>user\n").unwrap().to_owned()
}

#[test]
fn a_spaced_prompt_reads_like_this() {
    let state = Json::Object(vec![
        ("_id".to_owned(), string("7")),
        ("text".to_owned(), string("My card.")),
        ("tags".to_owned(), Json::Array(vec![Json::Null, Json::Bool(true)])),
    ]);
    let asked = sent(QUESTIONS[1].1);
    assert_eq!(
        turn(LettersSettings::default(), &state, &asked, &[0, 1]),
        "text: My card.\ntags: [null,true]\n\nQuestion: Which?\n\nOptions:\nA. Money\nB. Login\n\n\
         Which option applies? Reply with its letter alone."
    );
    assert_eq!(
        turn(LettersSettings::default(), &string("s"), &sent(QUESTIONS[9].1), &[1, 0]),
        "s\n\nQuestion: {\"a\":1}\n\nOptions:\nA. {\"x\":2}\nB. low\n\n\
         The levels go from highest to lowest. Which one applies? Reply with its letter alone."
    );
}

#[test]
fn a_compact_prompt_reads_like_this() {
    let compact =
        LettersSettings { prompt_tail: PromptTail::Compact, ..LettersSettings::default() };
    assert_eq!(
        turn(compact, &string("s"), &sent(QUESTIONS[8].1), &[0, 1]),
        "s\n\nQuestion: Refund?\nOptions:\nA. Else\nB. Money back\nReply with one letter."
    );
    assert_eq!(
        turn(compact, &string("s"), &score(&["low", "mid", "high"]), &[0, 1, 2]),
        "s\n\nQuestion: How?\nLevels: A = low; B = mid; C = high.\n\
         Lowest level first. Reply with one letter."
    );
}

#[test]
fn a_system_turn_and_a_begun_answer_can_be_had() {
    let begun = LettersSettings { answer_slot: AnswerSlot::Prefill, ..LettersSettings::default() };
    let bytes = Arc::new(SpacedLetters(ByteTokenizer::new()));
    let facts = ByteTokenizer::facts();
    let made = Prompter::new(bytes, &facts, profile(letters(&begun)), "model").unwrap();
    let text = rendered(&made, &string("s"), &noul("Late?"), &[0, 1]);
    assert!(text.starts_with("<|im_start|>system\nYou judge texts."), "{text}");
    assert!(text.ends_with("<|im_end|>\n<|im_start|>assistant\nAnswer:"), "{text}");
    assert_eq!(made.suffix(&noul("Late?"), &shown(&[0, 1])).labels[..], [1065, 1066]);
    assert_eq!(made.label_codes().len(), 26);
}

#[test]
fn where_no_letter_is_one_token_with_its_space_the_space_is_begun_too() {
    let begun = LettersSettings { answer_slot: AnswerSlot::Prefill, ..LettersSettings::default() };
    let made = prompter(letters(&begun));
    let text = rendered(&made, &string("s"), &noul("Late?"), &[0, 1]);
    assert!(text.ends_with("<|im_end|>\n<|im_start|>assistant\nAnswer: "), "{text}");
    assert_eq!(made.suffix(&noul("Late?"), &shown(&[0, 1])).labels[..], [65, 66]);
}

/// Bytes, but `no` and `yes` are one token each.
#[derive(Debug)]
struct YesNo(ByteTokenizer);

impl TextTokenizer for YesNo {
    fn encode(&self, text: &str) -> Vec<u32> {
        let marked = text.replace("yes", "\u{1}").replace("no", "\u{2}");
        self.0.encode(&marked)
    }

    fn controls(&self) -> &[(String, u32)] {
        self.0.controls()
    }

    fn decode(&self, ids: &[u32]) -> Vec<u8> {
        let text = String::from_utf8(self.0.decode(ids)).unwrap();
        text.replace('\u{1}', "yes").replace('\u{2}', "no").into_bytes()
    }

    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }
}

fn with_words(settings: LettersSettings) -> Prompter {
    let bytes = Arc::new(YesNo(ByteTokenizer::new()));
    Prompter::new(bytes, &ByteTokenizer::facts(), profile(letters(&settings)), "model").unwrap()
}

#[test]
fn a_noul_whose_sides_read_the_same_is_asked_by_words() {
    let made = with_words(LettersSettings::default());
    assert!(made.yes_first(&alike().kind) && !made.yes_first(&noul("Late?").kind));
    assert_eq!(made.labels_max(&alike().kind), 2);
    assert_eq!(made.labels_max(&noul("Late?").kind), 26);
    let text = rendered(&made, &string("s"), &alike(), &[1, 0]);
    let expected = "s\n\nQuestion: Late?\nYes means: x\nNo means: x\n\n\
                    Which is right, yes or no? Reply with that word alone.<|im_end|>";
    assert!(text.contains(expected), "{text}");
    assert_eq!(made.suffix(&alike(), &shown(&[1, 0])).labels[..], [1, 2]);
    assert_eq!(made.suffix(&noul("Late?"), &shown(&[0, 1])).labels[..], [65, 66]);
}

#[test]
fn another_order_of_words_changes_the_closing_line_alone() {
    let made = with_words(WORDS);
    let asked = sent(QUESTIONS[8].1);
    let text = rendered(&made, &string("s"), &asked, &[0, 1]);
    let expected = "Refund?\nYes means: Money back\nNo means: Else\n\nWhich is right, no or yes?";
    assert!(text.contains(expected), "{text}");
    assert_eq!(made.suffix(&asked, &shown(&[0, 1])).labels[..], [2, 1]);
}

#[test]
fn without_words_among_the_tokens_sides_that_read_the_same_are_named() {
    let made = prompter(letters(&LettersSettings::default()));
    let text = rendered(&made, &string("s"), &alike(), &[0, 1]);
    assert!(text.contains("Late?\n\nOptions:\nA. No: x\nB. Yes: x\n\n"), "{text}");
    assert_eq!(made.suffix(&alike(), &shown(&[0, 1])).labels[..], [65, 66]);
    assert_eq!(shown_options(made.layout(), &alike().kind), ["No: x", "Yes: x"]);
    assert_eq!(identity::rendering(made.layout(), &alike().kind), Some("letters-keys"));
}

#[test]
fn states_of_layouts_with_other_styles_are_other_segments() {
    let state = Json::Object(vec![("_k".to_owned(), string("v"))]);
    let key = |layout| prompter(layout).prefix(&state, SALT).prefix.state.key;
    let compact =
        LettersSettings { prompt_tail: PromptTail::Compact, ..LettersSettings::default() };
    let spaced = key(letters(&LettersSettings::default()));
    assert_eq!(spaced, key(letters(&LettersSettings::default())));
    assert_ne!(spaced, key(letters(&compact)));
    assert_ne!(spaced, key(&named::SYSTEM));
}

proptest! {
    /// ids(prompt) = ids(prefix) ++ ids(question part), in composed layouts too.
    #[test]
    fn the_boundary_holds_for_composed_layouts(state in any::<String>(), asked in any::<String>()) {
        let made = prompter(letters(&LettersSettings::default()));
        prop_assert!(made.boundary_holds(&state, &noul(&asked), &shown(&[1, 0])));
    }
}
