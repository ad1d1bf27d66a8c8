//! The frame of a plot: axes with ticks and units, and where a value lies in it.

use super::{escape, put};
use crate::report::short;

/// Size of a plot and of its margins, in the SVG's own unit. On a telephone all of it is drawn
/// smaller, and the style makes the letters larger in turn: the margins have room for them.
pub(super) const WIDTH: f64 = 560.0;
pub(super) const HEIGHT: f64 = 320.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 54.0;
/// Most ticks of an axis, about.
const TICKS: f64 = 5.0;

/// An axis: what it shows, and from where to where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    title: String,
    low: f64,
    high: f64,
    is_log: bool,
}

impl Axis {
    /// From zero to at least `high`.
    pub(crate) fn linear(title: &str, high: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let step = step(high);
        let high = (high / step - 1e-9).ceil() * step;
        Self { title: title.to_owned(), low: 0.0, high, is_log: false }
    }

    /// From zero to exactly `high`: for times, of which there is no more.
    pub(crate) fn until(title: &str, high: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        Self { title: title.to_owned(), low: 0.0, high, is_log: false }
    }

    /// Logarithmic, over all of the values that are positive, at least from one to five of
    /// something.
    pub(crate) fn log(title: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let values = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = values
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low.is_finite() { (low, high) } else { (1.0, 10.0) };
        let low = round(low, f64::floor);
        let high = round(high, f64::ceil).max(low * 5.0);
        Self { title: title.to_owned(), low, high, is_log: true }
    }

    /// Where a value lies, from 0 to 1; what is outside lies on the edge.
    fn share(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn ticks(&self) -> Vec<f64> {
        if !self.is_log {
            let step = step(self.high);
            let count = (self.high / step + 1e-9).floor();
            return (0..=20).map(f64::from).take_while(|n| *n <= count).map(|n| n * step).collect();
        }
        let decades = (self.high / self.low).log10();
        let within = if decades <= 1.5 { &[1.0, 2.0, 5.0][..] } else { &[1.0] };
        let first = exponent(self.low);
        let all = (first..=first + 15)
            .flat_map(|power| within.iter().map(move |part| part * 10_f64.powi(power)));
        let inside = all.filter(|tick| (self.low * 0.999..=self.high * 1.001).contains(tick));
        let inside: Vec<f64> = inside.collect();
        // Over many decades every second or third has a tick.
        inside.iter().copied().step_by(inside.len().div_ceil(7).max(1)).collect()
    }
}

/// A step of 1, 2 or 5 of a power of ten that divides an axis into about [`TICKS`] parts.
fn step(high: f64) -> f64 {
    let rough = high / TICKS;
    let power = 10_f64.powi(exponent(rough));
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|part| part * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough)
}

/// The nearest 1, 2 or 5 of a power of ten on one side.
fn round(value: f64, to: fn(f64) -> f64) -> f64 {
    let power = 10_f64.powi(exponent(value));
    let parts = [1.0, 2.0, 5.0, 10.0].map(|part| part * power);
    let is_floor = to(0.5) < 0.25;
    let fits = |part: &f64| if is_floor { *part <= value * 1.001 } else { *part >= value * 0.999 };
    let found = if is_floor { parts.into_iter().rfind(fits) } else { parts.into_iter().find(fits) };
    found.unwrap_or(value)
}

#[expect(clippy::cast_possible_truncation, reason = "the exponent of a double is within 400")]
fn exponent(value: f64) -> i32 {
    value.log10().floor().clamp(-12.0, 15.0) as i32
}

/// A plot under construction.
#[derive(Debug)]
pub(crate) struct Plot {
    svg: String,
    x: Axis,
    y: Axis,
}

impl Plot {
    /// An empty frame; `name` says to those who do not see it what it is.
    pub(crate) fn new(name: &str, x: Axis, y: Axis) -> Self {
        let mut plot = Self { svg: String::new(), x, y };
        let name = escape(name);
        put(
            &mut plot.svg,
            format_args!(
                "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{name}\">"
            ),
        );
        for tick in plot.y.ticks() {
            let y = plot.y(tick);
            let (from, to, text) = (LEFT, WIDTH - RIGHT, short_tick(tick));
            put(
                &mut plot.svg,
                format_args!(
                    "<line class=\"g\" x1=\"{from}\" x2=\"{to}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
                ),
            );
            put(
                &mut plot.svg,
                format_args!(
                    "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                    from - 6.0,
                    y + 5.0
                ),
            );
        }
        let bottom = HEIGHT - BOTTOM;
        for tick in plot.x.ticks() {
            let (x, text) = (plot.x(tick), short_tick(tick));
            put(
                &mut plot.svg,
                format_args!(
                    "<line class=\"g\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>"
                ),
            );
            let anchor = if x > WIDTH - RIGHT - 16.0 { "end" } else { "middle" };
            put(
                &mut plot.svg,
                format_args!(
                    "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>",
                    bottom + 20.0
                ),
            );
        }
        let (x_title, y_title) = (escape(&plot.x.title), escape(&plot.y.title));
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        put(
            &mut plot.svg,
            format_args!(
                "<text class=\"title\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">\
                 {x_title}</text>",
                HEIGHT - 8.0
            ),
        );
        put(&mut plot.svg, format_args!("<text class=\"title\" x=\"4\" y=\"20\">{y_title}</text>"));
        plot
    }

    /// Where a value lies from left to right.
    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    /// Where a value lies from top to bottom.
    pub(super) fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// Adds SVG.
    pub(super) fn put(&mut self, text: std::fmt::Arguments<'_>) {
        put(&mut self.svg, text);
    }

    /// Adds a band from one value of x to another over the whole height, that shows its text under
    /// a pointer.
    pub(super) fn hover(&mut self, from: f64, to: f64, text: &str) {
        let (from, to, text) = (self.x(from), self.x(to), escape(text));
        let (width, height) = (to - from, HEIGHT - TOP - BOTTOM);
        self.put(format_args!(
            "<rect class=\"hover\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" \
             height=\"{height}\"><title>{text}</title></rect>"
        ));
    }

    /// Adds a line across at a value of y, or upright at one of x, with a word at its end.
    pub(super) fn rule(&mut self, is_upright: bool, at: f64, word: &str) {
        let word = escape(word);
        if is_upright {
            let x = self.x(at);
            self.put(format_args!(
                "<line class=\"rule\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{}\"/>",
                HEIGHT - BOTTOM
            ));
            let (anchor, by) = if x > WIDTH / 2.0 { ("end", -5.0) } else { ("start", 5.0) };
            self.put(format_args!(
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{word}</text>",
                x + by,
                TOP + 16.0
            ));
            return;
        }
        let y = self.y(at);
        self.put(format_args!(
            "<line class=\"rule\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
            WIDTH - RIGHT
        ));
        self.put(format_args!("<text x=\"{}\" y=\"{:.1}\">{word}</text>", LEFT + 6.0, y + 18.0));
    }

    /// The plot as SVG.
    pub(crate) fn svg(mut self) -> String {
        self.svg.push_str("</svg>");
        self.svg
    }
}

/// A number on an axis: thousands as k.
fn short_tick(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = short(value);
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_ends_at_a_tick_and_has_about_five() {
        let axis = Axis::linear("x", 47.0);
        assert_eq!((axis.high, axis.ticks()), (50.0, vec![0.0, 10.0, 20.0, 30.0, 40.0, 50.0]));
        assert_eq!(Axis::linear("x", 0.3).ticks().len(), 4);
        assert_eq!(Axis::until("x", 47.0).ticks().last(), Some(&40.0));
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Axis::linear("x", nothing), Axis::linear("x", 1.0));
        }
    }

    #[test]
    fn a_logarithmic_axis_covers_its_values_in_decades() {
        let axis = Axis::log("ms", [0.0, 3.0, 4_700.0, f64::NAN]);
        assert_eq!((axis.low, axis.high), (2.0, 5_000.0));
        assert_eq!(axis.ticks(), [10.0, 100.0, 1_000.0]);
        let narrow = Axis::log("ms", [3.0, 8.0]);
        assert_eq!(narrow.ticks(), [2.0, 5.0, 10.0]);
        assert_eq!(Axis::log("ms", []).ticks(), [1.0, 2.0, 5.0, 10.0]);
        assert!(Axis::log("ms", [1e-6, 1e9]).ticks().len() <= 8);
    }

    #[test]
    fn values_lie_within_the_frame_whatever_they_are() {
        let plot = Plot::new("p", Axis::log("x", [1.0, 100.0]), Axis::linear("y", 10.0));
        for value in [f64::NEG_INFINITY, -1.0, 0.0, 5.0, 1e9, f64::NAN] {
            assert!((LEFT..=WIDTH - RIGHT).contains(&plot.x(value)), "{value}");
            assert!((TOP..=HEIGHT - BOTTOM).contains(&plot.y(value)), "{value}");
        }
        let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
        assert!((plot.x(10.0) - middle).abs() < 1e-6, "{}", plot.x(10.0));
        super::super::tests::check(&plot.svg());
    }

    #[test]
    fn ticks_are_short() {
        let texts = [0.0, 0.5, 2.5, 10.0, 5_000.0, 20_000.0, 1.5e6].map(short_tick);
        assert_eq!(texts, ["0", "0.5", "2.5", "10", "5000", "20k", "1.5M"]);
    }
}
