//! Stacked layers over time: how much of each, and how much of all, in each bin.

use super::{Axis, COLOURS, Plot, put};
use crate::report::short;

/// One layer: what it is, and its values by bin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    /// Number of the colour.
    pub(crate) colour: usize,
    pub(crate) name: String,
    /// Absent where nothing is known of a bin.
    pub(crate) values: Vec<Option<f64>>,
}

/// When the bins of a plot are, in seconds: the width of one, and when the last request started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bins {
    pub(crate) width_s: f64,
    pub(crate) last_start_s: f64,
}

/// Draws layers upon each other, the first at the bottom.
pub(crate) fn stacked(name: &str, y_title: &str, when: Bins, layers: &[Layer]) -> String {
    let bin_s = when.width_s;
    let bins = layers.iter().map(|layer| layer.values.len()).max().unwrap_or(0);
    let value = |layer: &Layer, bin: usize| layer.values.get(bin).copied().flatten().unwrap_or(0.0);
    let sum = |bin: usize| layers.iter().map(|layer| value(layer, bin)).sum::<f64>();
    let high = (0..bins).map(sum).fold(0.0, f64::max);
    let x = Axis::until("seconds since the warm-up", bins as f64 * bin_s);
    let mut plot = Plot::new(name, x, Axis::linear(y_title, high));
    let mut below = vec![0.0; bins];
    for layer in layers {
        let mut path = String::new();
        for (bin, below) in below.iter_mut().enumerate() {
            let above = *below + value(layer, bin);
            if above > *below {
                let (left, right) = (plot.x(bin as f64 * bin_s), plot.x((bin + 1) as f64 * bin_s));
                let (top, bottom) = (plot.y(above), plot.y(*below));
                put(
                    &mut path,
                    format_args!("M{left:.1} {bottom:.1}V{top:.1}H{right:.1}V{bottom:.1}Z"),
                );
            }
            *below = above;
        }
        plot.put(format_args!("<path class=\"area f{}\" d=\"{path}\"/>", layer.colour % COLOURS));
    }
    for bin in 0..bins {
        let from = bin as f64 * bin_s;
        let parts =
            layers.iter().rev().map(|layer| match layer.values.get(bin).copied().flatten() {
                Some(value) => format!("{} {}", layer.name, short(value)),
                None => format!("{} -", layer.name),
            });
        let text = format!("{} s: {}", short(from), parts.collect::<Vec<_>>().join(", "));
        plot.hover(from, from + bin_s, &text);
    }
    // What comes later is what was left to do.
    if when.last_start_s > 0.0 && when.last_start_s < (bins as f64 - 1.0) * bin_s {
        plot.rule(true, when.last_start_s, "last start");
    }
    plot.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHEN: Bins = Bins { width_s: 1.0, last_start_s: 1.5 };

    #[test]
    fn layers_lie_upon_each_other_and_bins_without_values_are_empty() {
        let layer = |colour, values: &[Option<f64>]| Layer {
            colour,
            name: "<a>".to_owned(),
            values: values.to_vec(),
        };
        let layers = [layer(0, &[Some(1.0), None, Some(3.0)]), layer(1, &[Some(4.0), None])];
        let svg = stacked("p", "y", WHEN, &layers);
        super::super::tests::check(&svg);
        let paths: Vec<&str> =
            svg.split("d=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(paths.iter().map(|path| path.matches('Z').count()).collect::<Vec<_>>(), [2, 1]);
        // The upper layer of the first bin begins where the lower one ends.
        let top = paths[0].split('V').nth(1).and_then(|rest| rest.split('H').next()).unwrap();
        assert!(paths[1].split('V').next().unwrap().ends_with(top), "{paths:?}");
        assert_eq!(svg.matches("<title>").count(), 3);
        assert!(svg.contains("last start"));
    }

    #[test]
    fn nothing_to_draw_is_an_empty_frame() {
        super::super::tests::check(&stacked("p", "y", WHEN, &[]));
    }
}
