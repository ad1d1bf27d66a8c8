//! Curves: lines through points, in one plot.

use super::{COLOURS, Plot};

/// Dashes by number of the curve, for who cannot tell the colours.
const DASHES: [&str; 4] = ["none", "7 3", "2 3", "9 3 2 3"];

/// A line through points.
#[derive(Debug, Clone, Default)]
pub(crate) struct Curve {
    /// Number of the colour.
    pub(crate) colour: usize,
    /// x and y; where y is absent the line is interrupted.
    pub(crate) points: Vec<(f64, Option<f64>)>,
    /// Whether each point has a dot.
    pub(crate) has_dots: bool,
    /// What a dot says under a pointer, by number of the point.
    pub(crate) words: Vec<String>,
}

/// A line from side to side, or from top to bottom.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule<'r> {
    At(f64, &'r str),
    Upright(f64, &'r str),
}

/// Draws curves and rules into a frame.
pub(crate) fn curves(mut plot: Plot, curves: &[Curve], rules: &[Rule<'_>]) -> String {
    for rule in rules {
        match rule {
            Rule::At(value, word) => plot.rule(false, *value, word),
            Rule::Upright(value, word) => plot.rule(true, *value, word),
        }
    }
    for (number, curve) in curves.iter().enumerate() {
        let path = path(&plot, &curve.points);
        let (colour, dash) = (curve.colour % COLOURS, DASHES[number % DASHES.len()]);
        plot.put(format_args!(
            "<path class=\"line s{colour}\" stroke-dasharray=\"{dash}\" d=\"{path}\"/>"
        ));
        for (number, (x, y)) in curve.points.iter().enumerate().filter(|_| curve.has_dots) {
            let Some(y) = y else { continue };
            let word = super::escape(curve.words.get(number).map_or("", String::as_str));
            let (x, y) = (plot.x(*x), plot.y(*y));
            plot.put(format_args!(
                "<circle class=\"f{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\">\
                 <title>{word}</title></circle>"
            ));
        }
    }
    plot.svg()
}

fn path(plot: &Plot, points: &[(f64, Option<f64>)]) -> String {
    let (mut path, mut is_drawn) = (String::new(), false);
    for (x, y) in points {
        if let Some(y) = y {
            let command = if is_drawn { 'L' } else { 'M' };
            super::put(&mut path, format_args!("{command}{:.1} {:.1}", plot.x(*x), plot.y(*y)));
        }
        is_drawn = y.is_some();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::*;

    #[test]
    fn a_line_is_interrupted_where_there_is_no_value() {
        let plot = Plot::new("p", Axis::linear("x", 10.0), Axis::linear("y", 10.0));
        let points = [(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None), (3.0, Some(1.0))];
        let path = path(&plot, &points);
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1), "{path}");
    }

    #[test]
    fn what_a_dot_says_is_escaped() {
        let plot = Plot::new("<p>", Axis::linear("<x>", 10.0), Axis::linear("y", 10.0));
        let curve = Curve {
            points: vec![(1.0, Some(1.0))],
            has_dots: true,
            words: vec!["</title>".to_owned()],
            ..Curve::default()
        };
        let svg = curves(plot, &[curve], &[Rule::At(5.0, "<5>"), Rule::Upright(2.0, "<2>")]);
        super::super::tests::check(&svg);
        assert!(svg.contains("&lt;/title&gt;"));
    }
}
