//! Themes: what the generated cases are about, parsed from the text files in `themes/`.
//!
//! The texts are data, so that a reader can judge the labels without reading code; the files' heads
//! say what each line means.

/// Everything that cases of one theme are made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Theme {
    /// Its name, part of no prompt.
    pub(crate) name: String,
    /// Shapes that its states may have.
    pub(crate) forms: Vec<String>,
    /// Subject lines.
    pub(crate) subjects: Vec<String>,
    /// Ways to ask.
    pub(crate) asks: Vec<String>,
    /// What no and yes mean, where the file says so.
    pub(crate) meanings: Option<[String; 2]>,
    /// Opening sentences.
    pub(crate) opens: Vec<String>,
    /// Sentences that say nothing about the question.
    pub(crate) asides: Vec<String>,
    /// Closing sentences.
    pub(crate) closes: Vec<String>,
    /// The possible answers: options, levels (lowest first), or yes and no.
    pub(crate) answers: Vec<ThemeAnswer>,
}

/// One possible answer of a theme.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThemeAnswer {
    /// Its key.
    pub(crate) key: String,
    /// Its description.
    pub(crate) description: String,
    /// Sentences from which it follows.
    pub(crate) evidence: Vec<String>,
    /// Sentences that mention it and say that it is not the case.
    pub(crate) denials: Vec<String>,
}

/// The options' themes.
pub(crate) fn choice() -> Vec<Theme> {
    parse(include_str!("themes/choice.txt"))
}

/// The levels' themes.
pub(crate) fn score() -> Vec<Theme> {
    parse(include_str!("themes/score.txt"))
}

/// The yes/no themes: the first answer is no, the second yes.
pub(crate) fn noul() -> Vec<Theme> {
    let mut themes = parse(include_str!("themes/noul.txt"));
    for theme in &mut themes {
        let both = std::mem::take(&mut theme.answers);
        theme.answers = both.into_iter().flat_map(no_and_yes).collect();
    }
    themes
}

/// Splits the single answer of a yes/no theme, whose `+` lines mean yes and `-` lines no.
fn no_and_yes(both: ThemeAnswer) -> [ThemeAnswer; 2] {
    let yes = ThemeAnswer { key: "yes".into(), evidence: both.evidence, ..ThemeAnswer::default() };
    let no = ThemeAnswer { key: "no".into(), evidence: both.denials, ..ThemeAnswer::default() };
    [no, yes]
}

fn parse(text: &str) -> Vec<Theme> {
    let mut themes: Vec<Theme> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "theme" {
            themes.push(Theme { name: rest.to_owned(), ..Theme::default() });
        } else if let Some(theme) = themes.last_mut() {
            theme.add(word, rest);
        }
    }
    themes
}

impl Theme {
    #[expect(clippy::panic, reason = "the files are compiled in; a bad line is a bug of ours")]
    fn add(&mut self, word: &str, rest: &str) {
        match word {
            "form" => self.forms = rest.split(' ').map(str::to_owned).collect(),
            "subject" => self.subjects.push(rest.to_owned()),
            "ask" => self.asks.push(rest.to_owned()),
            "true" => self.meanings = Some([String::new(), rest.to_owned()]),
            "false" => {
                if let Some([no, _]) = &mut self.meanings {
                    rest.clone_into(no);
                }
            }
            "open" => self.opens.push(rest.to_owned()),
            "~" => self.asides.push(rest.to_owned()),
            "close" => self.closes.push(rest.to_owned()),
            "option" | "level" => self.answers.push(ThemeAnswer::named(rest)),
            "+" => self.last_answer().evidence.push(rest.to_owned()),
            "-" => self.last_answer().denials.push(rest.to_owned()),
            _ => panic!("theme {}: unknown line {word:?}", self.name),
        }
    }

    /// The answer that `+` and `-` lines belong to; a yes/no theme has one without a name.
    fn last_answer(&mut self) -> &mut ThemeAnswer {
        if self.answers.is_empty() {
            self.answers.push(ThemeAnswer::default());
        }
        let last = self.answers.len() - 1;
        &mut self.answers[last]
    }
}

impl ThemeAnswer {
    fn named(rest: &str) -> Self {
        let (key, description) = rest.split_once(": ").unwrap_or((rest, ""));
        Self { key: key.to_owned(), description: description.to_owned(), ..Self::default() }
    }
}
