//! Prose: one text a seed, the same as ever in Latin script; each script in its own letters.

use super::*;

/// All scripts, and the ranges of their letters.
const SCRIPTS: [(Script, &[(char, char)]); 7] = [
    (Script::Latin, &[('A', 'z')]),
    (Script::Cyrillic, &[('\u{400}', '\u{4ff}')]),
    (Script::Greek, &[('\u{370}', '\u{3ff}')]),
    (Script::Arabic, &[('\u{600}', '\u{6ff}')]),
    (Script::Devanagari, &[('\u{900}', '\u{97f}')]),
    (Script::Han, &[('\u{4e00}', '\u{9fff}')]),
    (Script::Japanese, &[('\u{3040}', '\u{30ff}'), ('\u{4e00}', '\u{9fff}')]),
];

fn text(seed: u64, script: Script, words: usize) -> String {
    let mut prose = Prose::new(Random::of(seed, &[]), script);
    let mut text = String::new();
    (0..words).for_each(|_| prose.push_word(&mut text));
    text
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn a_seed_gives_one_text_and_more_words_only_extend_it() {
    for (script, _) in SCRIPTS {
        assert_eq!(text(1, script, 200), text(1, script, 200));
        assert_ne!(text(1, script, 200), text(2, script, 200));
        assert!(text(1, script, 300).starts_with(&text(1, script, 200)));
    }
}

/// Reports that were made with a seed can be made again.
#[test]
fn latin_texts_are_what_they_were_in_the_first_version() {
    assert_eq!(
        text(1, Script::Latin, 24),
        "We sold your refund abroad but the device is strange. Please tell me why the screen \
         promised our screen. Please tell me why the"
    );
    let long = text(1, Script::Latin, 5_000);
    assert_eq!((long.len(), hash(&long)), (30_935, 0xaa93_9ee3_418a_92ca));
}

#[test]
fn prose_is_its_own_json() {
    for (script, _) in SCRIPTS {
        let text = text(3, script, 5_000);
        assert_eq!(serde_json::to_string(&text).unwrap(), format!("\"{text}\""));
        assert_eq!(text.is_ascii(), script == Script::Latin);
    }
}

#[test]
fn each_script_has_letters_of_its_own_alone() {
    for (script, ranges) in SCRIPTS {
        let inside =
            |letter: &char| ranges.iter().any(|(first, last)| (first..=last).contains(&letter));
        let foreign: String =
            text(4, script, 5_000).chars().filter(|c| c.is_alphabetic() && !inside(c)).collect();
        assert_eq!(foreign, "", "{script:?}");
    }
}

#[test]
fn words_stand_between_spaces_or_have_two_characters_or_so() {
    for (script, _) in SCRIPTS {
        let text = text(5, script, 5_000);
        let mean = text.chars().count() as f64 / 5_000.0;
        match script.language().gap {
            "" => assert!((1.5..2.7).contains(&mean) && !text.contains(' '), "{script:?} {mean}"),
            _ => assert_eq!(text.split(' ').count(), 5_000, "{script:?}"),
        }
    }
}

#[test]
fn no_word_is_in_a_list_twice() {
    for (script, _) in SCRIPTS {
        for place in script.language().sentences.iter().copied().flatten() {
            if let Place::OneOf(list) = place {
                let different: std::collections::BTreeSet<_> = list.iter().collect();
                assert_eq!(different.len(), list.len(), "{script:?} {list:?}");
            }
        }
    }
}
