//! Spans: ratios with their ranges on one logarithmic scale, a row each, one in the middle.

use super::{COLOURS, escape, put};

/// How far the scale may reach to each side; what is further than the last lies on the edge.
const REACHES: [f64; 6] = [1.2, 1.5, 2.0, 3.0, 5.0, 10.0];

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) name: String,
    /// What stands at the end of the row.
    pub(crate) words: String,
    /// Number of the colour.
    pub(crate) colour: usize,
    pub(crate) at: f64,
    pub(crate) range: (f64, f64),
    /// A band behind it.
    pub(crate) noise: Option<(f64, f64)>,
}

/// Draws the rows.
pub(crate) fn spans(rows: &[Span]) -> String {
    let ends = rows.iter().flat_map(|row| [row.at, row.range.0, row.range.1]);
    let farthest = ends.filter(|ratio| *ratio > 0.0).map(|ratio| ratio.max(1.0 / ratio));
    let farthest = farthest.fold(1.0, f64::max);
    let reach = REACHES.into_iter().find(|reach| *reach >= farthest).unwrap_or(10.0);
    // Percent of the width.
    let x = |ratio: f64| ((away_from_left(ratio, reach)) * 100.0).clamp(0.0, 100.0);
    let mut out = String::from("<div class=\"share\">");
    for row in rows {
        let Span { name, words, colour, at, range, noise } = row;
        let (name, words, colour) = (escape(name), escape(words), colour % COLOURS);
        put(
            &mut out,
            format_args!("<span>{name}</span><span class=\"track\"><i class=\"one\"></i>"),
        );
        if let Some((low, high)) = noise {
            put(
                &mut out,
                format_args!(
                    "<i class=\"noise\" style=\"left:{:.1}%;width:{:.1}%\"></i>",
                    x(*low),
                    x(*high) - x(*low)
                ),
            );
        }
        put(
            &mut out,
            format_args!(
                "<i class=\"range b{colour}\" style=\"left:{:.1}%;width:{:.1}%\"></i>\
                 <i class=\"dot b{colour}\" style=\"left:{:.1}%\"></i></span><span>{words}</span>",
                x(range.0),
                x(range.1) - x(range.0),
                x(*at)
            ),
        );
    }
    put(
        &mut out,
        format_args!(
            "<span></span><span class=\"scale\"><span>{:.2}x</span><span>1x</span>\
             <span>{reach}x</span></span><span></span></div>",
            1.0 / reach
        ),
    );
    out
}

/// From 0 at one through the reach to 1 at the reach.
fn away_from_left(ratio: f64, reach: f64) -> f64 {
    if ratio > 0.0 { 0.5 + ratio.ln() / reach.ln() / 2.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_in_the_middle_and_what_is_far_on_the_edge() {
        for (ratio, place) in [(1.0, 0.5), (4.0, 1.0), (0.25, 0.0)] {
            assert!((away_from_left(ratio, 4.0) - place).abs() < 1e-9, "{ratio}");
        }
        let span = Span {
            name: "<p99>".to_owned(),
            words: "<worse>".to_owned(),
            colour: 3,
            at: 1e9,
            range: (0.0, f64::INFINITY),
            noise: Some((0.9, 1.1)),
        };
        let html = spans(&[span]);
        super::super::tests::check(&html);
        assert!(html.contains("dot b3\" style=\"left:100.0%\""), "{html}");
        super::super::tests::check(&spans(&[]));
    }
}
