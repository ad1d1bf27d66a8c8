//! The model's chat template: what stands before and after the user's turn.
//!
//! The template is rendered once, at start, around a mark that takes the place of the user's text.
//! User text itself never passes through it, so a state can neither be altered by a template nor
//! smuggle a control token into one. Rendering follows the settings that the templates were written
//! for: block lines leave no trace, Python's string methods work, `enable_thinking` is off.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, Value, context};

use super::PromptError;
use crate::files::PromptFacts;
use crate::json::Json;

/// What every template is given, and no request can change.
pub const RESERVED: [&str; 5] =
    ["messages", "bos_token", "eos_token", "add_generation_prompt", "enable_thinking"];

/// Stands for the user's text; no template says this itself.
const MARK: &str = "DOCKET-7F3A-USER-TEXT";

/// What `strftime_now` gives: a fixed day, because a prompt that changes overnight would make the
/// same request give other bytes (ARCHITECTURE D6), and every resident state a miss.
const TODAY: [(&str, &str); 11] = [
    ("%Y", "2024"),
    ("%y", "24"),
    ("%m", "07"),
    ("%d", "26"),
    ("%B", "July"),
    ("%b", "Jul"),
    ("%A", "Friday"),
    ("%a", "Fri"),
    ("%H", "00"),
    ("%M", "00"),
    ("%S", "00"),
];

/// Text before and after the user's text in a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// From the prompt's beginning to the user's text.
    pub before: String,
    /// From there to the read position.
    pub after: String,
}

/// One turn ahead of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// `system`, `user` or `assistant`.
    pub role: &'static str,
    /// What is said.
    pub text: String,
}

/// Renders the model's own template around a user's text that follows `turns`.
///
/// * `values`: what the template is given besides, by name; what it is given always ([`RESERVED`])
///   stays as it is.
///
/// # Errors
/// [`PromptError::Template`] when the template does not parse, refuses the turns, or drops,
/// repeats or alters the user's text.
pub fn frame(
    template: &str,
    facts: &PromptFacts,
    (turns, values): (&[Turn], &[(String, Json)]),
) -> Result<Frame, PromptError> {
    let rendered = render(template, facts, turns, values).map_err(|error| refused(&error))?;
    let mut parts = rendered.split(MARK);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(before), Some(after), None) => {
            Ok(Frame { before: before.to_owned(), after: after.to_owned() })
        }
        (_, None, _) => Err(template_error("it does not show the user's text unaltered")),
        (_, Some(_), _) => Err(template_error("it shows the user's text more than once")),
    }
}

/// The frame of a base model, whose files have no chat template: the turns as paragraphs, then the
/// user's text, then a line that the answer continues. BOS stands first where the tokenizer asks
/// for it.
pub fn plain_frame(facts: &PromptFacts, turns: &[Turn]) -> Frame {
    let mut before = String::new();
    if facts.add_bos {
        before.push_str(facts.bos.as_deref().unwrap_or_default());
    }
    for turn in turns {
        before.push_str(&turn.text);
        before.push_str(if turn.role == "user" { "\n" } else { "\n\n" });
    }
    Frame { before, after: "\n".to_owned() }
}

/// The control token that stands in a name or a text of a request's values for the template, where one
/// does: a template shows them as they are, and what it shows is searched for control tokens.
///
/// * `controls`: the tokenizer's, by their texts.
pub fn control_in<'c>(values: &[(String, Json)], controls: &'c [(String, u32)]) -> Option<&'c str> {
    values.iter().find_map(|member| control_in_member(member, controls))
}

fn control_in_member<'c>(
    (name, value): &(String, Json),
    controls: &'c [(String, u32)],
) -> Option<&'c str> {
    control_in_text(name, controls).or_else(|| control_in_json(value, controls))
}

fn control_in_json<'c>(json: &Json, controls: &'c [(String, u32)]) -> Option<&'c str> {
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) => None,
        Json::String(text) => control_in_text(text, controls),
        Json::Array(items) => items.iter().find_map(|item| control_in_json(item, controls)),
        Json::Object(members) => control_in(members, controls),
    }
}

fn control_in_text<'c>(text: &str, controls: &'c [(String, u32)]) -> Option<&'c str> {
    let mut controls = controls.iter().map(|(control, _)| control.as_str());
    controls.find(|control| !control.is_empty() && text.contains(control))
}

fn refused(error: &Error) -> PromptError {
    let line = error.line().map_or_else(String::new, |line| format!(" (line {line})"));
    let detail = error.detail().unwrap_or("no detail");
    template_error(&format!("{}: {detail}{line}", error.kind()))
}

fn template_error(message: &str) -> PromptError {
    PromptError::Template { message: message.to_owned() }
}

fn render(
    template: &str,
    facts: &PromptFacts,
    turns: &[Turn],
    values: &[(String, Json)],
) -> Result<String, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    // Python does not iterate over none, and templates ask so before they take a length.
    environment.add_test("iterable", |value: Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", |format: String| strftime_now(&format));
    let user = Turn { role: "user", text: MARK.to_owned() };
    let messages: Vec<Value> = turns.iter().chain([&user]).map(message).collect();
    let always = context! {
        messages => messages,
        bos_token => facts.bos.as_deref().unwrap_or_default(),
        eos_token => facts.eos.as_deref().unwrap_or_default(),
        add_generation_prompt => true,
        enable_thinking => false,
        tools => (),
        documents => (),
    };
    let given = values.iter().filter(|(name, _)| !RESERVED.contains(&name.as_str()));
    let given = map_of(given);
    // Of two values of one name the first counts.
    let all = context! { ..always, ..given };
    environment.template_from_str(&without_generation(template))?.render(all)
}

/// JSON as templates see it.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(spelling) => match (spelling.parse::<i64>(), spelling.parse::<f64>()) {
            (Ok(whole), _) => Value::from(whole),
            (Err(_), Ok(number)) => Value::from(number),
            (Err(_), Err(_)) => Value::from(spelling.as_str()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(value_of).collect(),
        Json::Object(members) => map_of(members.iter()),
    }
}

/// Collected as they are, pairs would be a list of pairs.
fn map_of<'v>(members: impl Iterator<Item = &'v (String, Json)>) -> Value {
    let map: BTreeMap<String, Value> =
        members.map(|(key, member)| (key.clone(), value_of(member))).collect();
    map.into()
}

/// Replaces the block `generation`, which marks text for training and which minijinja does not know,
/// by a block that is always rendered.
fn without_generation(template: &str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut tags = template.split("{%");
    out.push_str(tags.next().unwrap_or_default());
    for tag in tags {
        out.push_str("{%");
        let (sign, rest) = tag.split_at(tag.len() - tag.trim_start_matches(['-', '+']).len());
        let word_end = |name: &str| rest.trim_start().strip_prefix(name);
        let ends = |rest: &str| rest.starts_with(['-', '+', '%']) || rest.starts_with(' ');
        if let Some(rest) = word_end("generation").filter(|rest| ends(rest)) {
            out.push_str(&[sign, " if true", rest].concat());
        } else if let Some(rest) = word_end("endgeneration").filter(|rest| ends(rest)) {
            out.push_str(&[sign, " endif", rest].concat());
        } else {
            out.push_str(tag);
        }
    }
    out
}

fn message(turn: &Turn) -> Value {
    context! { role => turn.role, content => turn.text.as_str() }
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

fn strftime_now(format: &str) -> String {
    TODAY.iter().fold(format.to_owned(), |text, (code, value)| text.replace(code, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The features that real templates use, in a template of our own.
    const RICH: &str = r"{{- bos_token }}
{%- set day = strftime_now('%d %b %Y') %}
{%- if messages[0].role == 'system' %}
    {%- set told = messages[0]['content'].strip() %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set told = 'Be brief.' %}
{%- endif %}
{{- '<s>' + told + ' ' + day + '</s>' }}
{% for message in messages %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('turns must alternate') }}
    {% endif %}
{{ '<' + message['role'] + '>' + message['content'] | trim + '</>' }}
{% endfor %}
{%- if add_generation_prompt %}
    {{- '<assistant>' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think></think>' }}
    {%- endif %}
{%- endif %}";

    fn facts() -> PromptFacts {
        PromptFacts { bos: Some("<bos>".to_owned()), ..PromptFacts::default() }
    }

    fn turn(role: &'static str, text: &str) -> Turn {
        Turn { role, text: text.to_owned() }
    }

    #[test]
    fn a_template_is_split_around_the_users_text() {
        let frame = frame(RICH, &facts(), (&[], &[])).unwrap();
        assert_eq!(frame.before, "<bos><s>Be brief. 26 Jul 2024</s>\n<user>");
        assert_eq!(frame.after, "</>\n<assistant><think></think>");
    }

    #[test]
    fn a_system_turn_and_examples_stand_before_it() {
        let turns = [turn("system", " Own words. "), turn("user", "u"), turn("assistant", "a")];
        let frame = frame(RICH, &facts(), (&turns, &[])).unwrap();
        assert_eq!(
            frame.before,
            "<bos><s>Own words. 26 Jul 2024</s>\n<user>u</>\n<assistant>a</>\n<user>"
        );
    }

    fn message_of(template: &str, turns: &[Turn]) -> String {
        frame(template, &facts(), (turns, &[])).unwrap_err().to_string()
    }

    #[test]
    fn a_template_that_refuses_says_why() {
        let message = message_of(RICH, &[turn("user", "twice")]);
        assert!(message.contains("turns must alternate"), "{message}");
    }

    #[test]
    fn a_template_that_does_not_parse_says_where() {
        let message = message_of("line\n{% if %}", &[]);
        assert!(message.contains("line 2"), "{message}");
    }

    #[test]
    fn a_template_that_loses_alters_or_repeats_the_text_is_refused() {
        assert!(message_of("nothing", &[]).contains("unaltered"));
        assert!(message_of("{{ messages[0].content | lower }}", &[]).contains("unaltered"));
        assert!(message_of("{{ messages[0].content * 2 }}", &[]).contains("more than once"));
    }

    #[test]
    fn a_loop_can_be_left_early() {
        let template = "{% for m in messages %}{{ m.content }}!{% break %}{% endfor %}";
        assert_eq!(frame(template, &facts(), (&[], &[])).unwrap().after, "!");
    }

    #[test]
    fn blocks_that_mark_text_for_training_are_rendered() {
        let template = "{{ messages[0].content }}\n{% generation %}\n a\n{%- endgeneration -%}\n.\
                        {% set generations = 1 %}{{ generations }}";
        assert_eq!(frame(template, &facts(), (&[], &[])).unwrap().after, "\n a.1");
    }

    #[test]
    fn none_is_not_iterable() {
        let template = "{{ messages[0].content }}{% if tools is iterable and tools | length %}!\
                        {% endif %}{% if messages is iterable %}.{% endif %}";
        assert_eq!(frame(template, &facts(), (&[], &[])).unwrap().after, ".");
    }

    #[test]
    fn what_a_request_gives_reaches_the_template_and_changes_nothing_of_its_own() {
        let given = |name: &str, value: &str| (name.to_owned(), Json::String(value.to_owned()));
        let nested = Json::Object(vec![given("in", "side")]);
        let mut values =
            vec![given("tone", "dry"), given("eos_token", "!"), given("bos_token", "!")];
        values.push(("nested".to_owned(), nested));
        let template =
            "{{ bos_token }}{{ tone }}{{ nested.in }}{{ messages[0].content }}{{ eos_token }}";
        let frame = frame(template, &facts(), (&[], &values)).unwrap();
        assert_eq!((frame.before.as_str(), frame.after.as_str()), ("<bos>dryside", ""));
    }

    #[test]
    fn a_control_token_is_found_wherever_it_stands_in_values() {
        let controls = [("<|im_end|>".to_owned(), 1), (String::new(), 2), ("<s>".to_owned(), 3)];
        let text = |text: &str| Json::String(text.to_owned());
        let found = |value: Json| control_in(&[("name".to_owned(), value)], &controls);
        assert_eq!(found(text("a <|im_end|>")), Some("<|im_end|>"));
        assert_eq!(found(Json::Array(vec![Json::Null, text("<s>")])), Some("<s>"));
        assert_eq!(found(Json::Object(vec![("<s>x".to_owned(), Json::Null)])), Some("<s>"));
        assert_eq!(control_in(&[("<s>".to_owned(), Json::Null)], &controls), Some("<s>"));
        assert_eq!(found(text("<|im_end <s|>")), None);
    }

    #[test]
    fn a_base_model_gets_paragraphs() {
        let turns = [turn("user", "1 + 1?"), turn("assistant", "Answer: 2")];
        let with_bos = PromptFacts { add_bos: true, ..facts() };
        let frame = plain_frame(&with_bos, &turns);
        assert_eq!(frame.before, "<bos>1 + 1?\nAnswer: 2\n\n");
        assert_eq!(frame.after, "\n");
        assert!(!plain_frame(&facts(), &turns).before.contains("<bos>"));
    }
}
