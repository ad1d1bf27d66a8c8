//! Which questions wait for which, as requests say it: `ask_if`, `depends_on` and `ask`.
//!
//! What a name or an answer means is only known once all questions are read. So a question's own
//! fields are kept as they were sent, and put into the questions here; each dialect tells the faults in
//! its words.

use std::collections::{HashMap, HashSet};

use crate::json::Json;
use crate::prompt::state::legend;
use crate::question::stages::{Unordered, stages};
use crate::question::{Condition, Kind, Question};

/// What one question waits for, as it was sent; see [`conditions`].
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Waits {
    /// Answers of other questions under which alone it is asked, by the other's id.
    pub(super) ask_if: Vec<(String, Vec<Json>)>,
    /// Ids of questions that are to be answered before it.
    pub(super) depends_on: Vec<String>,
}

/// Why questions cannot be asked as a request wants them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unstaged {
    /// A question names one that is not asked, or itself.
    Unknown {
        /// Place of the question that does.
        question: usize,
        /// What it names.
        names: String,
        /// By which of its fields.
        field: &'static str,
    },
    /// A condition lists what cannot be an answer of the question that it names.
    NoAnswer {
        /// Place of the question that has the condition.
        question: usize,
        /// The question that it names.
        names: String,
        /// Place in the condition's list.
        index: usize,
        /// All answers that there can be; empty where the question's answers have no names.
        answers: Vec<String>,
    },
    /// Questions wait for each other: their places.
    Cycle(Vec<usize>),
}

/// Why a request cannot be answered for the questions that it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unasked {
    /// There is no question of the id at this place of the list.
    Unknown(usize),
    /// The question of this id waits for one that is not asked for.
    Open {
        /// The question.
        id: String,
        /// What it waits for.
        names: String,
    },
}

/// The conditions of an `ask_if`: an object of ids with lists of answers, none empty. `None` for
/// anything else.
pub(super) fn conditions(value: &Json) -> Option<Vec<(String, Vec<Json>)>> {
    let Json::Object(members) = value else { return None };
    let condition = |(id, answers): &(String, Json)| {
        let Json::Array(answers) = answers else { return None };
        (!answers.is_empty()).then(|| (id.clone(), answers.clone()))
    };
    members.iter().map(condition).collect()
}

/// The texts of a list, each once; `None` for anything else.
pub(super) fn names(value: &Json) -> Option<Vec<String>> {
    let Json::Array(items) = value else { return None };
    let names = items.iter().map(Json::as_str).collect::<Option<Vec<&str>>>()?;
    let mut seen = HashSet::new();
    Some(names.into_iter().filter(|name| seen.insert(*name)).map(str::to_owned).collect())
}

/// Puts what each question waits for into the questions; `waits` has one entry for each.
///
/// Takes time linear in both.
///
/// # Errors
/// The first fault found.
pub(super) fn staged(questions: &mut [Question], waits: Vec<Waits>) -> Result<(), Unstaged> {
    if waits.iter().all(|waits| waits.ask_if.is_empty() && waits.depends_on.is_empty()) {
        return Ok(());
    }
    let answers: Vec<(String, Vec<String>)> =
        questions.iter().map(|question| (question.id.clone(), answers(question))).collect();
    let known: HashMap<&str, HashSet<&str>> = answers
        .iter()
        .map(|(id, answers)| (id.as_str(), answers.iter().map(String::as_str).collect()))
        .collect();
    for (place, waits) in waits.into_iter().enumerate() {
        let own = questions[place].id.clone();
        let find = |names: &str, field| {
            known.get(names).filter(|_| names != own).ok_or_else(|| Unstaged::Unknown {
                question: place,
                names: names.to_owned(),
                field,
            })
        };
        for (id, values) in waits.ask_if {
            let allowed = find(&id, "ask_if")?;
            let answers = given(&values, allowed).map_err(|index| {
                let answers = answers.iter().find(|(name, _)| *name == id);
                let answers = answers.map(|(_, answers)| answers.clone()).unwrap_or_default();
                Unstaged::NoAnswer { question: place, names: id.clone(), index, answers }
            })?;
            questions[place].ask_if.push(Condition { question: id, answers });
        }
        for id in waits.depends_on {
            find(&id, "depends_on")?;
            questions[place].depends_on.push(id);
        }
    }
    match stages(questions) {
        Ok(_) => Ok(()),
        Err(Unordered::Cycle(places)) => Err(Unstaged::Cycle(places)),
        Err(Unordered::Unknown { question, names }) => {
            Err(Unstaged::Unknown { question, names, field: "ask_if" })
        }
    }
}

/// The answers that a condition lists, each once; the place of the first that is none of `allowed`.
fn given(values: &[Json], allowed: &HashSet<&str>) -> Result<Vec<String>, usize> {
    let mut seen = HashSet::new();
    let mut answers = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let text = value.as_str().filter(|text| allowed.contains(text)).ok_or(index)?;
        if seen.insert(text) {
            answers.push(text.to_owned());
        }
    }
    Ok(answers)
}

/// The names of a question's answers, as conditions say them; none of what is found in the state.
fn answers(question: &Question) -> Vec<String> {
    if question.finds.is_some() {
        return Vec::new();
    }
    match &question.kind {
        Kind::Noul { .. } => vec!["yes".to_owned(), "no".to_owned()],
        Kind::Choice { options } => options.iter().map(|option| option.key.clone()).collect(),
        Kind::Score { levels } => legend(levels),
    }
}

/// The questions that `ask` names, in the order of the request.
///
/// # Errors
/// [`Unasked`]; the list must have every question that one of it waits for.
pub(super) fn asked(questions: Vec<Question>, ask: &[String]) -> Result<Vec<Question>, Unasked> {
    let known: HashSet<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    if let Some(place) = ask.iter().position(|id| !known.contains(id.as_str())) {
        return Err(Unasked::Unknown(place));
    }
    let asked: HashSet<&str> = ask.iter().map(String::as_str).collect();
    let kept: Vec<Question> =
        questions.into_iter().filter(|question| asked.contains(question.id.as_str())).collect();
    for question in &kept {
        if let Some(names) = question.names().find(|name| !asked.contains(name)) {
            return Err(Unasked::Open { id: question.id.clone(), names: names.to_owned() });
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::Limits;
    use crate::question::{ChoiceOption, Finds};

    fn parsed(value: &serde_json::Value) -> Json {
        Json::parse(value.to_string().as_bytes(), Limits::default()).unwrap()
    }

    fn noul(id: &str) -> Question {
        let kind = Kind::Noul { when_true: None, when_false: None };
        Question::new(id.to_owned(), kind, None)
    }

    fn three() -> Vec<Question> {
        let option = |key: &str| ChoiceOption { key: key.to_owned(), description: None };
        let kind = Kind::Choice { options: ["billing", "infra"].map(option).to_vec() };
        let levels = ["low", "low", "high"].map(|level| Json::String(level.to_owned())).to_vec();
        vec![
            Question::new("team".to_owned(), kind, None),
            Question::new("mad".to_owned(), Kind::Score { levels }, None),
            noul("refund"),
        ]
    }

    fn waits(ask_if: &serde_json::Value) -> Waits {
        Waits { ask_if: conditions(&parsed(ask_if)).unwrap(), depends_on: Vec::new() }
    }

    /// What comes of three questions of which the last has this `ask_if`.
    fn of(ask_if: &serde_json::Value) -> Result<Vec<Condition>, Unstaged> {
        let mut questions = three();
        staged(&mut questions, vec![Waits::default(), Waits::default(), waits(ask_if)])?;
        Ok(questions.remove(2).ask_if)
    }

    #[test]
    fn answers_are_named_by_options_levels_and_yes_or_no() {
        let ask_if = json!({"team": ["infra", "infra"], "mad": ["low"]});
        let conditions = of(&ask_if).unwrap();
        assert_eq!(conditions.len(), 2);
        assert_eq!(conditions[0].answers, ["infra"], "each once");
        assert_eq!(
            (conditions[1].question.as_str(), &conditions[1].answers[..]),
            ("mad", &["low".to_owned()][..])
        );
        let answers = |fault| match fault {
            Err(Unstaged::NoAnswer { index, answers, .. }) => (index, answers),
            other => panic!("{other:?}"),
        };
        let (index, told) = answers(of(&json!({"team": ["infra", "sales"]})));
        assert_eq!((index, told), (1, vec!["billing".to_owned(), "infra".to_owned()]));
        assert_eq!(answers(of(&json!({"team": [true]}))).0, 0);
    }

    #[test]
    fn what_is_found_in_a_state_has_no_answers_to_wait_for() {
        let mut questions =
            vec![Question::finding("n".to_owned(), Finds::Excerpt, None), noul("b")];
        let fault = staged(&mut questions, vec![Waits::default(), waits(&json!({"n": ["yes"]}))]);
        let Err(Unstaged::NoAnswer { answers, .. }) = fault else { panic!("{fault:?}") };
        assert!(answers.is_empty());
    }

    #[test]
    fn unknown_names_itself_and_circles_are_faults() {
        let unknown =
            |names: &str, field| Unstaged::Unknown { question: 2, names: names.to_owned(), field };
        assert_eq!(of(&json!({"nobody": ["yes"]})), Err(unknown("nobody", "ask_if")));
        assert_eq!(of(&json!({"refund": ["yes"]})), Err(unknown("refund", "ask_if")));
        let depends = |id: &str| Waits { ask_if: Vec::new(), depends_on: vec![id.to_owned()] };
        let mut questions = vec![noul("a"), noul("b")];
        assert_eq!(
            staged(&mut questions, vec![depends("b"), depends("a")]),
            Err(Unstaged::Cycle(vec![0, 1]))
        );
        let mut questions = vec![noul("a")];
        let fault = Unstaged::Unknown { question: 0, names: "a".to_owned(), field: "depends_on" };
        assert_eq!(staged(&mut questions, vec![depends("a")]), Err(fault));
    }

    #[test]
    fn only_lists_with_something_in_them_are_conditions() {
        for value in [json!(null), json!([]), json!({"a": []}), json!({"a": "yes"}), json!("a")] {
            assert_eq!(conditions(&parsed(&value)), None, "{value}");
        }
        assert_eq!(conditions(&parsed(&json!({}))), Some(Vec::new()));
        assert_eq!(names(&parsed(&json!(["a", "b", "a"]))), Some(vec!["a".into(), "b".into()]));
        assert_eq!(names(&parsed(&json!(["a", 1]))), None);
    }

    #[test]
    fn what_is_asked_for_keeps_the_order_of_the_request_and_must_be_closed() {
        let questions = || {
            let condition = Condition { question: "a".to_owned(), answers: vec!["yes".to_owned()] };
            vec![noul("a"), Question { ask_if: vec![condition], ..noul("b") }, noul("c")]
        };
        let ask = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            asked(questions(), &ids).map(|kept| kept.into_iter().map(|q| q.id).collect::<Vec<_>>())
        };
        assert_eq!(ask(&["b", "a"]).unwrap(), ["a", "b"]);
        assert_eq!(ask(&["c"]).unwrap(), ["c"]);
        assert_eq!(ask(&["c", "d"]), Err(Unasked::Unknown(1)));
        let open = Unasked::Open { id: "b".to_owned(), names: "a".to_owned() };
        assert_eq!(ask(&["b"]), Err(open));
    }
}
