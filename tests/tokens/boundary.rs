//! The prefix boundary with real vocabularies (ARCHITECTURE D8): the tokens of a prompt are those of
//! its parts, whatever the state ends in and the question begins with, in every layout.

use std::sync::Arc;

use docket::files::PromptFacts;
use docket::json::Json;
use docket::prompt::Prompter;
use docket::prompt::layout::letters::{LettersSettings, PromptTail, letters};
use docket::prompt::layout::{Profile, named, profile_for};
use docket::prompt::tokens::TextTokenizer;
use docket::question::{ChoiceOption, Kind, Question, Shown};

use super::support::{Vocabulary, texts};
use super::vectors::{GPT_2, LLAMA_BPE, LLAMA_SPM, QWEN2, SMOLLM};

/// What states end in and questions begin with, beside the 200 texts.
const EDGES: [&str; 16] = [
    "",
    ".",
    "dot.\n",
    "\n\n",
    " ",
    "\t\t",
    " \n \n ",
    ":",
    "…",
    "e\u{301}",
    "7",
    "\u{0}",
    "\u{200d}",
    "\u{3000}",
    "<|im_end|>\n",
    "Question:",
];

fn asked(text: &str) -> Question {
    let kind = Kind::Noul { when_true: None, when_false: None };
    let instructions = Some(Json::String(text.to_owned()));
    Question::new(String::new(), kind, instructions)
}

/// All layouts, and those that are composed, for a model without chat template, which every vocabulary can serve.
fn prompters(vocabulary: &Vocabulary) -> Vec<Prompter> {
    let Some(tokenizer) = vocabulary.tokenizer() else { return Vec::new() };
    let tokenizer: Arc<dyn TextTokenizer> = Arc::new(tokenizer);
    let prompter = |layout| {
        let profile = Profile { layout, ..profile_for("", None) };
        Prompter::new(Arc::clone(&tokenizer), &PromptFacts::default(), profile, "test").unwrap()
    };
    let composed = [PromptTail::Spaced, PromptTail::Compact]
        .map(|prompt_tail| letters(&LettersSettings { prompt_tail, ..LettersSettings::default() }));
    named::LAYOUTS.into_iter().chain(composed).map(prompter).collect()
}

fn boundary_holds(vocabulary: &Vocabulary) {
    let shown = Shown { options: vec![0, 1] };
    let texts = texts();
    for prompter in prompters(vocabulary) {
        for (state, question) in texts.iter().zip(texts.iter().rev()) {
            let held = prompter.boundary_holds(state, &asked(question), &shown);
            assert!(held, "{}: {state:?} {question:?}", prompter.layout_id());
        }
        for (state, question) in EDGES.iter().flat_map(|a| EDGES.iter().map(move |b| (a, b))) {
            let held = prompter.boundary_holds(state, &asked(question), &shown);
            assert!(held, "{}: {state:?} {question:?}", prompter.layout_id());
        }
    }
}

/// What is said of a text's tokens by its bytes alone is never too much.
fn bounds(vocabulary: &Vocabulary) {
    let Some(tokenizer) = vocabulary.tokenizer() else { return };
    let pieces = (0..tokenizer.vocab_size()).step_by(7).map(|id| {
        let bytes = tokenizer.decode(&[u32::try_from(id).unwrap()]);
        String::from_utf8_lossy(&bytes).repeat(3)
    });
    let runs = [" ", "\u{2581}", "\n", "!", "a", "\u{0}", "\u{14}", "=", "é", "😀"];
    for text in texts().into_iter().chain(pieces).chain(runs.map(|run| run.repeat(1_000))) {
        let (least, tokens) = (tokenizer.tokens_min(&text), tokenizer.encode(&text).len());
        assert!(least <= tokens, "{least} of {tokens}: {text:?}");
    }
    assert!(tokenizer.tokens_min(&" ".repeat(1 << 20)) > 4_000, "{}", vocabulary.name);
    assert!(tokenizer.tokens_min(&"words ".repeat(1 << 17)) > 4_000, "{}", vocabulary.name);
}

/// The tokens of a long state's text alone are counted from its edges, and exactly.
fn counts(vocabulary: &Vocabulary) {
    let Some(tokenizer) = vocabulary.tokenizer() else { return };
    let long = texts().concat();
    let alone = tokenizer.encode(&long).len();
    for prompter in prompters(vocabulary) {
        let counted = prompter.prefix(&Json::String(long.clone()), b"").state_tokens;
        assert_eq!(counted as usize, alone, "{}", prompter.layout_id());
        assert!(prompter.labels_max(&asked("").kind) >= 2, "{}", prompter.layout_id());
    }
}

/// What is shown as a layout's own tokens is what prompts of real words have beyond these words.
fn fixed_tokens(vocabulary: &Vocabulary) {
    let Some(tokenizer) = vocabulary.tokenizer() else { return };
    let space = if tokenizer.encode(" a").len() > tokenizer.encode("a").len() { "" } else { " " };
    let own = |text: &str| tokenizer.encode(&[space, text].concat()).len();
    let words = ["a refund", "a broken part", "something else", "no reason at all"];
    let instructions = "What does the customer write about";
    for prompter in prompters(vocabulary) {
        let mut yes_no = vec![0, 1];
        if prompter.yes_first(&asked("").kind) {
            yes_no.reverse();
        }
        let fixed = prompter.fixed_tokens();
        let suffix = |kind, options: Vec<usize>| {
            let asked = Question { kind, ..asked(instructions) };
            prompter.suffix(&asked, &Shown { options }).suffix.len()
        };
        let noul = suffix(asked("").kind, yes_no);
        assert_eq!(noul, own(instructions) + fixed.noul.of(2) as usize, "{}", prompter.layout_id());
        let listed: usize = words.into_iter().chain([instructions]).map(own).sum();
        let option = |key: &str| ChoiceOption { key: key.to_owned(), description: None };
        let choice = Kind::Choice { options: words.map(option).to_vec() };
        let choice = suffix(choice, vec![0, 1, 2, 3]);
        assert_eq!(choice, listed + fixed.choice.of(4) as usize, "{}", prompter.layout_id());
        let score =
            Kind::Score { levels: words.map(|word| Json::String(word.to_owned())).to_vec() };
        let score = suffix(score, vec![0, 1, 2, 3]);
        assert_eq!(score, listed + fixed.score.of(4) as usize, "{}", prompter.layout_id());
    }
}

#[test]
fn the_boundary_holds_for_qwen2() {
    boundary_holds(&QWEN2);
    counts(&QWEN2);
    bounds(&QWEN2);
    fixed_tokens(&QWEN2);
}

#[test]
fn the_boundary_holds_for_llama_bpe() {
    boundary_holds(&LLAMA_BPE);
    counts(&LLAMA_BPE);
    bounds(&LLAMA_BPE);
    fixed_tokens(&LLAMA_BPE);
}

#[test]
fn the_boundary_holds_for_gpt_2() {
    boundary_holds(&GPT_2);
    counts(&GPT_2);
    bounds(&GPT_2);
    fixed_tokens(&GPT_2);
}

#[test]
fn the_boundary_holds_for_sentencepiece() {
    boundary_holds(&LLAMA_SPM);
    counts(&LLAMA_SPM);
    bounds(&LLAMA_SPM);
    fixed_tokens(&LLAMA_SPM);
}

#[test]
fn the_boundary_holds_for_smollm() {
    boundary_holds(&SMOLLM);
    counts(&SMOLLM);
    bounds(&SMOLLM);
    fixed_tokens(&SMOLLM);
}
