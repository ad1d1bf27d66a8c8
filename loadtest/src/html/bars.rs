//! Bars: what each tenant got, beside what it asked for and a mark at its fair share.

use super::{escape, put};
use crate::report::percent;

/// One row: shares between 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shares<'s> {
    pub(crate) name: &'s str,
    pub(crate) served: f64,
    pub(crate) asked: f64,
    pub(crate) fair: f64,
}

/// Draws the rows.
pub(crate) fn shares(rows: &[Shares<'_>]) -> String {
    let most = rows.iter().flat_map(|row| [row.served, row.asked, row.fair]).fold(0.0, f64::max);
    let width =
        |share: f64| if most > 0.0 { (share / most * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let mut out = String::from("<div class=\"share\">");
    for row in rows {
        let (name, got) = (escape(row.name), percent(row.served));
        let words =
            format!("got {got}, asked for {}, fair {}", percent(row.asked), percent(row.fair));
        put(
            &mut out,
            format_args!(
                "<span>{name}</span><span class=\"track\" title=\"{words}\">\
                 <i class=\"served b0\" style=\"width:{:.1}%\"></i>\
                 <i class=\"asked b7\" style=\"width:{:.1}%\"></i>\
                 <i class=\"fair\" style=\"left:calc({:.1}% - 2px)\"></i></span>\
             <span>{got}</span>",
                width(row.served),
                width(row.asked),
                width(row.fair)
            ),
        );
    }
    out.push_str("</div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_share_fills_its_row_and_names_are_escaped() {
        let rows = [
            Shares { name: "<hog>", served: 0.25, asked: 0.8, fair: 0.25 },
            Shares { name: "acme", served: 0.75, asked: 0.2, fair: 0.75 },
        ];
        let html = shares(&rows);
        super::super::tests::check(&html);
        assert!(html.contains("&lt;hog&gt;") && html.contains("width:100.0%"), "{html}");
        super::super::tests::check(&shares(&[]));
    }
}
