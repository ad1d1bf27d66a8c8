//! Arrivals: that the gaps have the moments of their process, and that the rate is met.

use super::*;

fn arrivals(rate: f64, seconds: u64, seed: u64) -> Arrivals {
    Arrivals {
        pattern: Pattern::default(),
        rate: Some(rate),
        burst: 1,
        duration: Some(Duration::from_secs(seconds)),
        seed,
    }
}

fn starts(arrivals: &Arrivals) -> Vec<u64> {
    arrivals.schedule().unwrap().starts_us
}

fn of(pattern: &str, rate: f64, seconds: u64) -> Vec<u64> {
    let pattern = Pattern::parse(pattern).unwrap();
    let starts = starts(&Arrivals { pattern, ..arrivals(rate, seconds, 1) });
    assert!(starts.is_sorted() && starts.last().unwrap() < &(seconds * 1_000_000));
    starts
}

/// Mean, and squared coefficient of variation.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean) * (value - mean));
    (mean, squares.sum::<f64>() / values.len() as f64 / (mean * mean))
}

fn gaps_ms(starts: &[u64]) -> Vec<f64> {
    starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e3).collect()
}

/// How many start in each stretch of so many milliseconds.
fn counts(starts: &[u64], stretch_ms: u64, stretches: usize) -> Vec<f64> {
    let mut counts = vec![0.0; stretches];
    for start_us in starts {
        counts[usize::try_from(start_us / 1_000 / stretch_ms).unwrap()] += 1.0;
    }
    counts
}

#[test]
fn a_seed_gives_one_schedule() {
    for pattern in ["poisson", "gamma:0.5", "on-off:8,1,5", "ramp:0,2"] {
        let pattern = Pattern::parse(pattern).unwrap();
        let of = |seed| starts(&Arrivals { pattern: pattern.clone(), ..arrivals(100.0, 10, seed) });
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}

#[test]
fn the_starts_of_a_seed_are_those_of_the_versions_before() {
    // Results that were kept compare only while this holds. The numbers are those of a port of the
    // first version to another language.
    let starts = starts(&arrivals(10.0, 30, 1));
    assert_eq!((starts.len(), &starts[..3]), (301, &[31_314, 112_202, 361_115][..]));
}

#[test]
fn the_rate_is_met() {
    // The counts have a mean of 100,000. Poisson's deviation is 316, the gamma's that over the root
    // of its burstiness; with the flash crowds and the ramps it is Poisson's.
    for pattern in ["poisson", "gamma:0.5", "gamma:4", "on-off:8,5,30", "ramp:0.5,1.5", "ramp:2,0"]
    {
        let count = of(pattern, 1_000.0, 100).len();
        assert!((98_500..101_500).contains(&count), "{pattern}: {count}");
    }
    let count = of("ramp:1,3", 1_000.0, 100).len();
    assert!((198_000..202_000).contains(&count), "{count}");
}

#[test]
fn gaps_are_exponential() {
    let mut gaps = gaps_ms(&of("poisson", 1_000.0, 100));
    gaps.sort_by(f64::total_cmp);
    // Kolmogorov-Smirnov distance to 1 - exp(-gap); the .1 % bound is 1.95 / sqrt(n).
    let n = gaps.len() as f64;
    let distance = gaps
        .iter()
        .enumerate()
        .map(|(i, gap)| (i as f64 / n - (1.0 - (-gap).exp())).abs())
        .fold(0.0, f64::max);
    assert!(distance < 1.95 / n.sqrt(), "{distance}");
}

#[test]
fn gaps_of_a_gamma_vary_by_its_burstiness() {
    for (pattern, variation) in [("gamma:0.25", 4.0), ("gamma:1", 1.0), ("gamma:4", 0.25)] {
        let (mean_ms, found) = moments(&gaps_ms(&of(pattern, 1_000.0, 200)));
        assert!((mean_ms - 1.0).abs() < 0.02, "{pattern}: {mean_ms}");
        assert!((found / variation - 1.0).abs() < 0.05, "{pattern}: {found}");
    }
}

#[test]
fn counts_of_a_second_vary_as_much_as_their_mean() {
    let (mean, variation) = moments(&counts(&of("poisson", 50.0, 2_000), 1_000, 2_000));
    assert!((variation * mean - 1.0).abs() < 0.15, "mean {mean}, {variation}");
}

#[test]
fn a_flash_crowd_is_in_the_middle_of_its_period_and_so_many_times_the_base() {
    // Base rate: 1,000 * 20 / (15 + 8 * 5) = 363.6; seconds 7.5 to 12.5 of each 20 are the crowd.
    let counts = counts(&of("on-off:8,5,20", 1_000.0, 200), 2_500, 80);
    for (index, count) in counts.iter().enumerate() {
        let times = if matches!(index % 8, 3 | 4) { 8.0 } else { 1.0 };
        let expected = times * 363.6 * 2.5;
        assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{index}: {count}");
    }
    let sum: f64 = counts.iter().sum();
    assert!((sum - 200_000.0).abs() < 5.0 * 200_000.0_f64.sqrt(), "{sum}");
}

#[test]
fn a_ramp_rises_in_a_line() {
    let counts = counts(&of("ramp:0.5,1.5", 1_000.0, 100), 10_000, 10);
    for (index, count) in counts.iter().enumerate() {
        let expected = 10_000.0 * (0.55 + 0.1 * index as f64);
        assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{index}: {count}");
    }
}

#[test]
fn a_burst_starts_at_one_moment_and_keeps_the_rate() {
    let burst = Arrivals { burst: 50, ..arrivals(500.0, 100, 6) };
    let starts = starts(&burst);
    assert!(starts.chunks(50).all(|burst| burst.len() == 50 && burst[0] == burst[49]));
    assert!((40_000..60_000).contains(&starts.len()), "{}", starts.len());
}

#[test]
fn impossible_schedules_name_the_value_and_the_limit() {
    let text = |arrivals: Arrivals| arrivals.schedule().unwrap_err().to_string();
    assert_eq!(text(arrivals(0.0, 1, 1)), "--rate is 0, must be over 0 and at most 1000000");
    assert!(text(arrivals(1e6, 100, 1)).ends_with("100000000 requests, at most 5000000"));
    assert!(text(arrivals(1e-9, 1, 1)).ends_with("gives no request"));
    assert!(text(arrivals(f64::NAN, 1, 1)).starts_with("--rate is NaN"));
    let pattern = Pattern::parse("on-off:8,5,60").unwrap();
    assert_eq!(
        text(Arrivals { pattern, ..arrivals(1.0, 30, 1) }),
        "--duration is 30s, must be at least the 60 s of one period of --arrivals on-off:8,5,60"
    );
}

/// A trace of these lines, in a file of its own that is gone afterwards.
fn trace(lines: &str, arrivals: impl Fn(Pattern) -> Arrivals) -> anyhow::Result<Schedule> {
    static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("loadtest-trace-{}-{number}", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, lines).unwrap();
    let schedule = arrivals(Pattern::Trace { file: file.clone(), speed: 2.0 }).schedule();
    std::fs::remove_file(file).unwrap();
    schedule
}

fn recorded(pattern: Pattern) -> Arrivals {
    Arrivals { pattern, rate: None, burst: 1, duration: None, seed: 1 }
}

#[test]
fn a_trace_keeps_its_starts_at_its_speed_and_says_its_rate() {
    let lines = "100\n101\n{\"at\":104}\n102.5\n";
    let whole = trace(lines, recorded).unwrap();
    assert_eq!(whole.starts_us, [0, 500_000, 1_250_000, 2_000_000]);
    assert_eq!(whole.duration, Duration::from_millis(2_001));
    assert!((whole.rate - 1.999).abs() < 1e-9, "{}", whole.rate);
    let duration = Some(Duration::from_secs(1));
    let cut = trace(lines, |pattern| Arrivals { duration, burst: 2, ..recorded(pattern) });
    assert_eq!(cut.unwrap().starts_us, [0, 0, 500_000, 500_000]);
}

#[test]
fn a_trace_that_cannot_be_used_says_why() {
    let fault = |lines: &str, of: &dyn Fn(Pattern) -> Arrivals| {
        format!("{:#}", trace(lines, of).unwrap_err())
    };
    let with_rate = |pattern| Arrivals { rate: Some(1.0), ..recorded(pattern) };
    assert!(fault("1", &with_rate).starts_with("--rate: a trace has its own rate"));
    assert!(fault("1\nx", &recorded).contains("line 2: "));
    assert!(fault("\n", &recorded).contains("has no start"));
    let long = fault("0\n172801", &recorded);
    assert!(long.contains("is 24.0 h long, at most 24 h"), "{long}");
    let bursts = |pattern| Arrivals { burst: 3_000_000, ..recorded(pattern) };
    assert!(fault("1\n2", &bursts).contains("is 6000000 requests, at most 5000000"));
}
