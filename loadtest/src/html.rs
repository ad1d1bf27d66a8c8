//! Pages for people: one HTML file that needs nothing else, with plots drawn here as inline SVG.
//!
//! What comes from outside, such as a workload's name, is escaped where it is put in, and the page
//! forbids itself scripts and whatever lies elsewhere.

mod areas;
mod bars;
mod curves;
mod plot;
mod spans;
mod table;

use std::fmt::Write as _;

pub(crate) use areas::{Bins, Layer, stacked};
pub(crate) use bars::{Shares, shares};
pub(crate) use curves::{Curve, Rule, curves};
pub(crate) use plot::{Axis, Plot};
pub(crate) use spans::{Span, spans};
pub(crate) use table::table;

const STYLE: &str = include_str!("html/style.css");
/// Colours of the style, told apart by those who do not see red or green too.
///
/// Source: M. Okabe, K. Ito, "Color universal design" (2008), made lighter on dark ground.
const COLOURS: usize = 8;

/// A page: what it says at the top, and what follows.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// What came of it, in a sentence.
    pub(crate) verdict: String,
    /// Whether to believe it, in a sentence.
    pub(crate) trust: String,
    pub(crate) is_doubtful: bool,
    /// Large numbers with what they are.
    pub(crate) tiles: Vec<(String, String)>,
    /// Figures and tables, as HTML.
    pub(crate) cards: Vec<String>,
}

impl Page {
    /// The whole page.
    pub(crate) fn html(&self) -> String {
        let (title, verdict, trust) =
            (escape(&self.title), escape(&self.verdict), escape(&self.trust));
        let doubt = if self.is_doubtful { " doubt" } else { "" };
        let tile = |(value, what): &(String, String)| {
            format!(
                "<div class=\"tile\"><b>{}</b><span>{}</span></div>\n",
                escape(value),
                escape(what)
            )
        };
        let tiles: String = self.tiles.iter().map(tile).collect();
        let cards = self.cards.concat();
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'\">\
             <title>{title}</title><style>\n{STYLE}</style></head><body>\n\
             <h1>{title}</h1>\n<p class=\"verdict\">{verdict}</p>\n\
             <p class=\"trust{doubt}\">{trust}</p>\n\
             <div class=\"tiles\">\n{tiles}</div>\n\
             <div class=\"grid\">\n{cards}</div>\n</body></html>\n"
        )
    }
}

/// A figure or table in its frame.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Card<'c> {
    pub(crate) title: &'c str,
    /// What is shown, and what to look for.
    pub(crate) caption: &'c str,
    /// Number of the colour, and what has it.
    pub(crate) legend: &'c [(usize, String)],
    /// HTML.
    pub(crate) body: &'c str,
    pub(crate) is_wide: bool,
}

impl Card<'_> {
    /// As HTML.
    pub(crate) fn html(&self) -> String {
        let Self { body, legend, .. } = self;
        let entry = |(colour, name): &(usize, String)| {
            format!("<li><i class=\"b{}\"></i>{}</li>", colour % COLOURS, escape(name))
        };
        let entries: String = legend.iter().map(entry).collect();
        let legend = if legend.is_empty() {
            entries
        } else {
            format!("<ul class=\"legend\">{entries}</ul>")
        };
        let wide = if self.is_wide { " wide" } else { "" };
        format!(
            "<figure class=\"card{wide}\"><h2>{}</h2><figcaption>{}</figcaption>\
             {legend}{body}</figure>\n",
            escape(self.title),
            escape(self.caption)
        )
    }
}

/// Facts with their names.
pub(crate) fn facts(facts: &[(&str, String)]) -> String {
    let fact = |(name, value): &(&str, String)| {
        format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value))
    };
    format!("<dl>{}</dl>", facts.iter().map(fact).collect::<String>())
}

/// Text as it may stand in an element or an attribute; what no page may have is replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(' '),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Adds formatted text; a `String` takes all of it.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Fails unless every element is closed, in order, and nothing lies elsewhere.
    pub(crate) fn check(page: &str) {
        let mut open: Vec<&str> = Vec::new();
        let page = page.replace(STYLE, "");
        for tag in page.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect("a tag ends");
            let name = tag.split([' ', '/']).next().unwrap_or("");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "</{name}>");
            } else if !(tag.ends_with('/') || ["meta", "!DOCTYPE"].contains(&name)) {
                open.push(name);
            }
        }
        assert_eq!(open, [""; 0]);
        for elsewhere in ["<script", "<link", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(elsewhere) && !STYLE.contains(elsewhere), "{elsewhere}");
        }
        for number in ["NaN", "inf"] {
            assert!(!page.contains(&format!("\"{number}")), "{number} as a coordinate");
        }
    }

    #[test]
    fn text_from_outside_cannot_leave_its_place() {
        assert_eq!(escape("<b>&\"'\u{0}\n"), "&lt;b&gt;&amp;&quot;&#39;\u{fffd} ");
        let hostile = || "</title><script>alert(1)</script>\"'".to_owned();
        let legend = [(0, hostile())];
        let (title, caption) = (&hostile(), &hostile());
        let card = Card { title, caption, legend: &legend, ..Card::default() }.html();
        let page = Page {
            title: hostile(),
            verdict: hostile(),
            trust: hostile(),
            tiles: vec![(hostile(), hostile())],
            cards: vec![card, facts(&[("url", hostile())])],
            ..Page::default()
        };
        let page = page.html();
        check(&page);
        assert_eq!(page.matches("&lt;script&gt;").count(), 10);
    }
}
