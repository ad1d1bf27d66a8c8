//! Slots: the names and numbers of one case, filled into the themes' sentences.
//!
//! Each slot has one value a case, so that the question and the state speak of the same things.

use crate::random::Random;

const PERSONS: [&str; 16] = [
    "Anna", "Bruno", "Clara", "David", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko",
    "Luis", "Mara", "Nils", "Olga", "Pavel",
];
const SURNAMES: [&str; 12] = [
    "Adler", "Bergmann", "Costa", "Dubois", "Eriksen", "Fontana", "Garcia", "Horvat", "Ivanov",
    "Janssen", "Keller", "Lindberg",
];
const COMPANIES: [&str; 12] = [
    "Northwind Foods",
    "Bluebird Travel",
    "Hallmann & Sons",
    "Corva Energy",
    "Tessera Media",
    "Linden Clinic",
    "Ostara Books",
    "Pinewood Logistics",
    "Quarz Optics",
    "Rivermark Bank",
    "Solera Wines",
    "Tandem Bikes",
];
const CITIES: [&str; 12] = [
    "Lisbon", "Graz", "Utrecht", "Porto", "Malmo", "Leeds", "Bologna", "Tampere", "Krakow",
    "Ghent", "Basel", "Cork",
];
const WEEKDAYS: [&str; 5] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"];
const MONTHS: [&str; 8] =
    ["January", "February", "March", "April", "May", "September", "October", "November"];
const ITEMS: [&str; 8] = [
    "coffee machine",
    "vacuum cleaner",
    "food mixer",
    "desk fan",
    "sewing machine",
    "paper shredder",
    "dehumidifier",
    "bread slicer",
];
const DEVICES: [&str; 4] = ["laptop", "folding phone", "tablet with keyboard", "travel laptop"];
const MATTERS: [&str; 4] = ["new software", "car park", "summer party", "new logo"];
const LIMITS: [usize; 4] = [100, 200, 300, 500];

/// The values of one case.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Vec<(&'static str, String)>);

impl Slots {
    /// Draws a value for each slot.
    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut persons = PERSONS;
        random.shuffle(&mut persons);
        let limit = *random.pick(&LIMITS);
        let mut slots: Vec<(&'static str, String)> = [
            ("person", persons[0]),
            ("other", persons[1]),
            ("writer", persons[2]),
            ("surname", *random.pick(&SURNAMES)),
            ("company", *random.pick(&COMPANIES)),
            ("city", *random.pick(&CITIES)),
            ("weekday", *random.pick(&WEEKDAYS)),
            ("month", *random.pick(&MONTHS)),
            ("item", *random.pick(&ITEMS)),
            ("device", *random.pick(&DEVICES)),
            ("matter", *random.pick(&MATTERS)),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .into();
        let numbers = [
            ("few", 2 + random.below(3)),
            ("some", 5 + random.below(5)),
            ("tens", 20 + random.below(70)),
            ("hundreds", 210 + random.below(690)),
            ("id", 1000 + random.below(9000)),
            ("limit", limit),
            ("under", limit * (30 + random.below(50)) / 100),
            ("over", limit * (130 + random.below(150)) / 100),
        ];
        slots.extend(numbers.map(|(name, value)| (name, value.to_string())));
        slots.push(("hour", format!("{}:{}0", 9 + random.below(8), random.below(6))));
        Self(slots)
    }

    /// The value of one slot; empty for a name that does not exist.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(slot, _)| *slot == name).map_or("", |(_, value)| value)
    }

    /// Fills a sentence: first `[a|b]` takes one of its parts, then `{slot}` its value.
    pub(crate) fn fill(&self, sentence: &str, random: &mut Random) -> String {
        let mut text = take_parts(sentence, random);
        for (name, value) in &self.0 {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}

fn take_parts(sentence: &str, random: &mut Random) -> String {
    let mut text = String::new();
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('[') {
        let (parts, tail) = after.split_once(']').unwrap_or((after, ""));
        let parts: Vec<&str> = parts.split('|').collect();
        text.push_str(before);
        text.push_str(parts[random.below(parts.len())]);
        rest = tail;
    }
    text + rest
}
