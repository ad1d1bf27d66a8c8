//! Labelled cases: a state, one question, and the right answer.
//!
//! The generated ones are drawn from a fixed seed: the right answer comes first, then facts from
//! which it follows. Kinds take turns, so that the first 60 are a balanced subset: 20 of each kind,
//! each choice position and each answer equally often.

use docket::json::Json;
use docket::question::{ChoiceOption, Kind, Question};

use crate::forms::{self, Body};
use crate::random::Random;
use crate::slots::Slots;
use crate::themes::{self, Theme};

/// Generated cases of each kind.
pub(crate) const CASES_PER_KIND: usize = 120;
const SEED: u64 = 20_260_711;

/// One labelled question.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Its name in the results file, for example `choice-017`.
    pub(crate) id: String,
    /// What it is about.
    pub(crate) state: Json,
    /// What is asked.
    pub(crate) question: Question,
    /// Index of the right answer: an option in request order, a level, or for noul 0 = no, 1 = yes.
    pub(crate) gold: usize,
}

/// What the schedule wants of a case.
#[derive(Debug, Clone, Copy)]
struct Draw<'a> {
    theme: &'a Theme,
    /// Index of the theme's answer that is to be right.
    answer: usize,
    /// Which of its `+` lines tells it.
    line: usize,
}

/// The generated cases, in an order whose every beginning is balanced.
pub(crate) fn generated() -> Vec<Case> {
    let (nouls, choices, scores) = (themes::noul(), themes::choice(), themes::score());
    let mut random = Random::new(SEED);
    let noul = noul_cases(&nouls, &mut random);
    let choice = choice_cases(&choices, &mut random);
    let score = score_cases(&scores, &mut random);
    let turns = noul.into_iter().zip(choice).zip(score);
    turns.flat_map(|((noul, choice), score)| [noul, choice, score]).collect()
}

/// Yes and no take turns; each theme says each of its ten lines once.
fn noul_cases(themes: &[Theme], random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for round in 0..CASES_PER_KIND / themes.len() {
        let mut sides = [Vec::new(), Vec::new()];
        for (index, theme) in themes.iter().enumerate() {
            let answer = (index + round) % 2;
            sides[answer].push(Draw { theme, answer, line: round / 2 });
        }
        for side in &mut sides {
            random.shuffle(side);
        }
        let [no, yes] = sides;
        for draw in no.into_iter().zip(yes).flat_map(|(no, yes)| [no, yes]) {
            let number = cases.len();
            cases.push(noul_case(number, draw, &mut Random::new(random.next())));
        }
    }
    cases
}

fn noul_case(number: usize, draw: Draw<'_>, random: &mut Random) -> Case {
    let slots = Slots::draw(random);
    let aside = random.pick(&draw.theme.asides).clone();
    let state = state(draw, &aside, &slots, random);
    let meanings = draw.theme.meanings.as_ref().filter(|_| number % 3 != 2);
    let [when_false, when_true] =
        [0, 1].map(|side| meanings.map(|texts| filled(&texts[side], &slots, random)));
    let kind = Kind::Noul { when_true, when_false };
    let question = question(draw.theme, kind, &slots, random);
    Case { id: format!("noul-{number:03}"), state, question, gold: draw.answer }
}

/// Rounds of twenty: two to six options with the right one at each position once.
fn choice_cases(themes: &[Theme], random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut order: Vec<usize> = Vec::new();
    while cases.len() < CASES_PER_KIND {
        let mut places: Vec<(usize, usize)> =
            (2..=6).flat_map(|options| (0..options).map(move |at| (options, at))).collect();
        random.shuffle(&mut places);
        for place in places {
            let number = cases.len();
            if number.is_multiple_of(themes.len()) {
                order = (0..themes.len()).collect();
                random.shuffle(&mut order);
            }
            let round = number / themes.len();
            let theme = &themes[order[number % themes.len()]];
            let answers = theme.answers.len();
            let draw = Draw { theme, answer: round % answers, line: round / answers };
            cases.push(choice_case(number, draw, place, &mut Random::new(random.next())));
        }
    }
    cases
}

/// `(options, at)`: how many options, and where the right one stands.
fn choice_case(
    number: usize,
    draw: Draw<'_>,
    (options, at): (usize, usize),
    random: &mut Random,
) -> Case {
    let slots = Slots::draw(random);
    let mut others: Vec<usize> = (0..draw.theme.answers.len()).collect();
    others.retain(|answer| *answer != draw.answer);
    random.shuffle(&mut others);
    others.truncate(options - 1);
    // The state denies one of the options that are offered, so that a mere mention decides nothing.
    let denial = random.pick(&draw.theme.answers[others[0]].denials).clone();
    let state = state(draw, &denial, &slots, random);
    let mut shown = others;
    random.shuffle(&mut shown);
    shown.insert(at, draw.answer);
    let described = number % 3 != 2;
    let options = shown.iter().map(|answer| {
        let answer = &draw.theme.answers[*answer];
        let description = described.then(|| Json::String(answer.description.clone()));
        ChoiceOption { key: answer.key.clone(), description }
    });
    let kind = Kind::Choice { options: options.collect() };
    let question = question(draw.theme, kind, &slots, random);
    Case { id: format!("choice-{number:03}"), state, question, gold: at }
}

/// Rounds of twelve: three to five levels with each level right once.
fn score_cases(themes: &[Theme], random: &mut Random) -> Vec<Case> {
    let mut cases = Vec::new();
    for round in 0..CASES_PER_KIND / 12 {
        let mut places: Vec<(usize, usize)> =
            (3..=5).flat_map(|levels| (0..levels).map(move |level| (levels, level))).collect();
        random.shuffle(&mut places);
        for (levels, answer) in places {
            let fitting: Vec<&Theme> =
                themes.iter().filter(|theme| theme.answers.len() == levels).collect();
            let theme = fitting[(round + answer) % fitting.len()];
            let draw = Draw { theme, answer, line: round / fitting.len() };
            let number = cases.len();
            cases.push(score_case(number, draw, &mut Random::new(random.next())));
        }
    }
    cases
}

fn score_case(number: usize, draw: Draw<'_>, random: &mut Random) -> Case {
    let slots = Slots::draw(random);
    let aside = random.pick(&draw.theme.asides).clone();
    let state = state(draw, &aside, &slots, random);
    let described = number % 3 != 2;
    let levels = draw.theme.answers.iter().map(|level| {
        let name = level.key.replace('_', " ");
        Json::String(if described { format!("{name}: {}", level.description) } else { name })
    });
    let kind = Kind::Score { levels: levels.collect() };
    let question = question(draw.theme, kind, &slots, random);
    Case { id: format!("score-{number:03}"), state, question, gold: draw.answer }
}

fn state(draw: Draw<'_>, aside: &str, slots: &Slots, random: &mut Random) -> Json {
    let theme = draw.theme;
    let evidence = &theme.answers[draw.answer].evidence;
    let mut middle = [evidence[draw.line % evidence.len()].as_str(), aside];
    random.shuffle(&mut middle);
    let lines = [random.pick(&theme.opens), middle[0], middle[1], random.pick(&theme.closes)];
    let sentences = lines.map(|line| slots.fill(line, random)).into();
    let subject = theme.subjects.first().map(|line| slots.fill(line, random)).unwrap_or_default();
    let form = random.pick(&theme.forms).clone();
    forms::render(&form, &Body { subject, sentences }, slots, random)
}

fn question(theme: &Theme, kind: Kind, slots: &Slots, random: &mut Random) -> Question {
    let ask = random.pick(&theme.asks).clone();
    let instructions = Some(filled(&ask, slots, random));
    Question::new("q".to_owned(), kind, instructions)
}

fn filled(text: &str, slots: &Slots, random: &mut Random) -> Json {
    Json::String(slots.fill(text, random))
}
