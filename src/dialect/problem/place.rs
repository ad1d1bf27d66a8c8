//! Where in a body a fault is, as a text, and what is told of several.

use crate::dialect::echo;
use crate::error::{Problem, Step};

/// A path as `questions.q.criteria[1]`; empty for the body itself. Each key is cut.
pub(super) fn place(path: &[Step]) -> String {
    let mut place = String::new();
    for step in path {
        match step {
            Step::Key(key) if place.is_empty() => place.push_str(&echo(key)),
            Step::Key(key) => place.extend([".", &echo(key)]),
            Step::Index(index) => place.extend(["[", &index.to_string(), "]"]),
        }
    }
    place
}

/// All faults in a line, each with its place. A message that begins with the name of its field is told
/// with the place of what the field is in.
pub(super) fn told(problems: &[Problem]) -> String {
    let told: Vec<String> = problems.iter().map(one).collect();
    told.join("; ")
}

fn one(problem: &Problem) -> String {
    // Of an unknown field the path is that of what it is in, which may be named like the message's start.
    let names = |field: &str| {
        let rest = problem.message.strip_prefix(field);
        problem.code != "unknown_field" && rest.is_some_and(|rest| rest.starts_with(' '))
    };
    let path = match problem.path.split_last() {
        Some((Step::Key(field), above)) if names(field) => above,
        Some(_) | None => &problem.path,
    };
    let place = place(path);
    if place.is_empty() {
        return problem.message.clone();
    }
    format!("{place}: {}", problem.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_named_like_a_message_keeps_its_place() {
        let problem = |id: &str, code, message: &str| {
            Problem::new(vec!["questions".into(), id.into()], code, message.to_owned())
        };
        for id in ["u", "unknown"] {
            let fault = problem(id, "unknown_field", "unknown field \"zz\"");
            assert_eq!(told(&[fault]), format!("questions.{id}: unknown field \"zz\""));
        }
        let fault = problem("type", "missing", "type is missing");
        assert_eq!(told(&[fault]), "questions: type is missing");
    }
}
