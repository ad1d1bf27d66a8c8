//! Tables: a head and rows, that scroll by themselves where the page is narrow.

use super::{escape, put};

/// A table; the first cell of each row is its name.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = String::from("<div class=\"scroll\"><table><thead><tr>");
    for cell in head {
        put(&mut out, format_args!("<th>{}</th>", escape(cell)));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            put(&mut out, format_args!("<td>{}</td>", escape(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_escaped() {
        let html = table(&["<a>"], &[vec!["<b>".to_owned(), "2".to_owned()]]);
        super::super::tests::check(&html);
        assert!(
            html.contains("<th>&lt;a&gt;</th>") && html.contains("<td>&lt;b&gt;</td><td>2</td>")
        );
    }
}
