//! What goes wrong around the `fake` engine, as it is typed: `panic@3,hang@5=2s,nan@row~poison`.

use std::str::FromStr;
use std::time::Duration;

use actors::ActorKind;

use super::quantity::parse_duration;
use crate::engine::fake::fault::{Fault, FaultKind, Place};

/// How much longer a step takes that hangs, where nothing is said.
const HANG: Duration = Duration::from_mins(1);

/// How a fault is written.
const GRAMMAR: &str = "write KIND@PLACE, more of them after commas; KIND is panic, error, nan, oom or \
     hang (hang@2=90s for so long) of a step, or an actor that panics: scheduler, cache or \
     registration; PLACE is N, N+ (from the N-th on) or N:M (from there every M-th), and of a step \
     also row~TEXT, state~TEXT or over~TOKENS";

/// Any number of faults; none by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FakeFaults(pub Vec<Fault>);

impl FromStr for FakeFaults {
    type Err = String;

    /// Faults between commas.
    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(fault).collect::<Result<_, _>>().map(Self)
    }
}

fn fault(text: &str) -> Result<Fault, String> {
    let none = |what: &str| format!("{text:?} has {what}; {GRAMMAR}");
    let (name, place) = text.split_once('@').ok_or_else(|| none("no place"))?;
    let mut kind = kind(name).ok_or_else(|| format!("{name:?} is no fault; {GRAMMAR}"))?;
    let mut place = place;
    if let FaultKind::Hang(time) = &mut kind
        && let Some((before, length)) = place.rsplit_once('=')
    {
        (place, *time) = (before, parse_duration(length)?);
    }
    let place = self::place(place).ok_or_else(|| none("no such place"))?;
    if matches!(
        (kind, &place),
        (FaultKind::Actor(_), Place::Row(_) | Place::State(_) | Place::Over(_))
    ) {
        return Err(none("a place that an actor has not"));
    }
    Ok(Fault { kind, place })
}

fn kind(name: &str) -> Option<FaultKind> {
    let actor = |name| ActorKind::ALL.into_iter().find(|actor| actor.as_str() == name);
    match name {
        "panic" => Some(FaultKind::Panic),
        "error" => Some(FaultKind::Error),
        "nan" => Some(FaultKind::Nan),
        "hang" => Some(FaultKind::Hang(HANG)),
        "oom" => Some(FaultKind::OutOfMemory),
        name => actor(name).map(FaultKind::Actor),
    }
}

/// `None` for what is no place; numbers are counted from 1.
fn place(text: &str) -> Option<Place> {
    if let Some((what, value)) = text.split_once('~') {
        let text = Some(value.to_owned()).filter(|value| !value.is_empty());
        return match what {
            "row" => text.map(Place::Row),
            "state" => text.map(Place::State),
            "over" => value.parse().ok().map(Place::Over),
            _ => None,
        };
    }
    let (first, every) = match (text.strip_suffix('+'), text.split_once(':')) {
        (Some(first), _) => (first, "1"),
        (None, Some((first, every))) => (first, every),
        (None, None) => return number(text).map(|first| Place::Nth { first, every: 0 }),
    };
    Some(Place::Nth { first: number(first)?, every: number(every)? })
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(FaultKind, Place)> {
        let faults: FakeFaults = text.parse().unwrap();
        faults.0.into_iter().map(|fault| (fault.kind, fault.place)).collect()
    }

    fn nth(first: u64, every: u64) -> Place {
        Place::Nth { first, every }
    }

    #[test]
    fn faults_are_read_with_their_places() {
        assert_eq!(parsed("nan@3"), [(FaultKind::Nan, nth(3, 0))]);
        assert_eq!(
            parsed("error@2+,oom@1:3,scheduler@4"),
            [
                (FaultKind::Error, nth(2, 1)),
                (FaultKind::OutOfMemory, nth(1, 3)),
                (FaultKind::Actor(ActorKind::Scheduler), nth(4, 0)),
            ]
        );
        assert_eq!(
            parsed("panic@row~is it @ 3=4:5+?,nan@state~x,oom@over~64"),
            [
                (FaultKind::Panic, Place::Row("is it @ 3=4:5+?".to_owned())),
                (FaultKind::Nan, Place::State("x".to_owned())),
                (FaultKind::OutOfMemory, Place::Over(64)),
            ]
        );
    }

    #[test]
    fn a_hang_has_its_length() {
        assert_eq!(parsed("hang@1"), [(FaultKind::Hang(Duration::from_mins(1)), nth(1, 0))]);
        let two = FaultKind::Hang(Duration::from_secs(2));
        assert_eq!(parsed("hang@2+=2s"), [(two, nth(2, 1))]);
        assert!("hang@1=soon".parse::<FakeFaults>().unwrap_err().contains("soon"));
    }

    #[test]
    fn what_is_no_fault_is_told_how_one_is_written() {
        for text in [
            "panic",
            "melt@1",
            "nan@x",
            "nan@",
            "nan@0",
            "oom@1:0",
            "nan@row~",
            "nan@step~x",
            "cache@row~x",
            "panic@1,",
            "oom@over~x",
            "",
        ] {
            let told = text.parse::<FakeFaults>().unwrap_err();
            assert!(told.starts_with('"') && told.contains("write KIND@PLACE"), "{text}: {told}");
        }
    }
}
