//! Settings from their places to a configuration, and back to a file that means the same.

use std::io::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use tempfile::NamedTempFile;

use super::*;
use crate::cli::Command;
use crate::cli::config::ConfigCommand;
use crate::config::KeysFrom;

/// Texts of which each setting takes some.
const TEXTS: [&str; 26] = [
    "1",
    "3",
    "64",
    "100",
    "256",
    "2048",
    "0.25",
    "1e1",
    "007",
    "30ms",
    "2s",
    "10m",
    "3h",
    "1KiB",
    "3 MiB",
    "true",
    "off",
    "cuda:1",
    "503",
    "keys",
    "nan@3,hang@9=2s",
    "two words",
    "\"quoted\" = [1] # no comment",
    "line\nline",
    "schlüssel",
    "a,b",
];

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn typed(flags: &[&str]) -> Typed {
    let line = ["docket", "serve"].iter().chain(flags);
    parse(line.map(OsString::from)).unwrap()
}

fn configured(typed: Typed) -> (Settings, Result<Config, Vec<Fault>>) {
    let home = typed.cli.home();
    let Command::Serve(arguments) = typed.cli.command else { panic!("not serve") };
    let config = typed.settings.config(*arguments, home);
    (typed.settings, config)
}

fn config(flags: &[&str]) -> Config {
    configured(typed(flags)).1.unwrap()
}

fn faults(flags: &[&str]) -> Vec<String> {
    configured(typed(flags)).1.unwrap_err().iter().map(ToString::to_string).collect()
}

/// The flags that name this file.
fn with(file: &NamedTempFile) -> [&str; 2] {
    ["--config", file.path().to_str().unwrap()]
}

fn shown(flags: &[&str]) -> String {
    let (settings, config) = configured(typed(flags));
    settings.shown(&config.unwrap()).to_toml()
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let file = file(
        "[http]\nport = 9000\nbody_limit = \"1MiB\"\n[model]\nhome = \"/models\"\noffline = true\n\
         [telemetry]\nlog = \"json\"\n[profiles.fast]\nsamples = 1\n",
    );
    let [flag, path] = with(&file);
    let typed = typed(&[flag, path, "--port", "9001"]);
    assert_eq!(typed.cli.log, crate::cli::LogFormat::Json);
    let config = configured(typed).1.unwrap();
    assert_eq!((config.http.port, config.http.body_limit_bytes), (9001, 1 << 20));
    assert_eq!((config.model.home, config.model.offline), (PathBuf::from("/models"), true));
    assert_eq!(config.http.connections_max, 1024);
    assert_eq!(config.decision.profiles["fast"].samples.map(|set| set.values()), Some(vec![1]));
}

#[test]
fn the_model_may_be_named_in_the_file_and_without_a_flag() {
    let file = file("[model]\nmodel = \"smollm2:135m\"\n");
    let [flag, path] = with(&file);
    let model = |flags: &[&str]| config(flags).model.model.to_string();
    assert_eq!(model(&[flag, path]), "smollm2:135m");
    assert_eq!(model(&[flag, path, "a.gguf"]), "a.gguf");
    assert_eq!(model(&["--model", "a.gguf", "a.gguf"]), "a.gguf");
    let told = faults(&["--model", "a.gguf", "b.gguf", flag, path]);
    assert_eq!(told, ["--model: a.gguf and b.gguf are both named; one is served"]);
}

#[test]
fn keys_of_the_file_are_not_split_at_commas_and_those_of_flags_replace_them() {
    let file = file("[http]\napi_key = [\"a=k,1\", \"k2\"]\n");
    let [flag, path] = with(&file);
    let keys = |flags: &[&str]| {
        let keys = config(flags).http.api_keys.into_iter();
        keys.map(|key| key.secret.reveal().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[flag, path]), ["k,1", "k2"]);
    assert_eq!(keys(&[flag, path, "--api-key", "k3"]), ["k3"]);
    let split = |text: &str| split(&OsString::from(text));
    assert_eq!(split("k1,k2"), ["k1", "k2"]);
}

#[test]
fn faults_of_values_and_of_what_they_mean_come_together_each_with_its_place() {
    let file = file(
        "[http]\nbody_limit = \"big\"\nstall_after = 0\nkeys = \"k\"\n[engine]\nthreads = 0\n\
         [scheduler]\nrows_max = 5000\nreads_max = 2\ncolour = 1\n",
    );
    let [flag, path] = with(&file);
    let told =
        faults(&[flag, path, "--rows-max", "0", "--chunk-tokens", "many", "--layout", "none"]);
    let places: Vec<&str> = told.iter().map(|told| told.split_once(": ").unwrap().0).collect();
    let expected = [
        "http.body_limit",
        "scheduler.colour",
        "--layout",
        "--chunk-tokens",
        "http.stall_after",
        "engine.threads",
        "--rows-max",
        "scheduler.reads_max",
    ];
    assert_eq!(places, expected, "{told:?}");
}

#[test]
fn what_stands_in_for_a_value_that_cannot_be_read_is_no_fault() {
    // 512 tokens of a step would be too few for the chunk.
    let told = faults(&["--chunk-tokens", "1024", "--step-tokens", "x"]);
    assert_eq!(told, ["--step-tokens: \"x\": a whole number is wanted"]);
    let told = faults(&["--engine", "fak", "--fake-step-ms", "1"]);
    assert_eq!(told.len(), 1, "{told:?}");
}

/// What `docket config check` tells, with what `further` finds.
fn checked(
    flags: &[&str],
    further: impl FnOnce(&Config, bool) -> Vec<config::Fault>,
) -> Vec<String> {
    let mut typed = typed(flags);
    typed.settings.unknown = environment::unknown([OsString::from("DOCKET_PROT")].into_iter());
    let Command::Serve(arguments) = typed.cli.command else { panic!("not serve") };
    let faults = typed.settings.check(*arguments, PathBuf::new(), further).unwrap_err();
    faults.iter().map(ToString::to_string).collect()
}

#[test]
fn a_check_looks_further_though_there_are_faults() {
    let file = file("[http]\nkeys = \"k.toml\"\nbody_limit = \"big\"\n");
    let [flag, path] = with(&file);
    let fault = |flag, message: &str| config::Fault { flag, message: message.to_owned() };
    let told = checked(&[flag, path, "--threads", "0"], |config, is_sound| {
        let keys = Some(KeysFrom::File(PathBuf::from("k.toml")));
        assert_eq!((config.http.keys.clone(), is_sound), (keys, false));
        vec![fault("--keys", "it is faulty"), fault("--threads", "a second time")]
    });
    let places: Vec<&str> = told.iter().map(|told| told.split_once(": ").unwrap().0).collect();
    assert_eq!(places, ["http.body_limit", "--threads", "http.keys", "DOCKET_PROT"], "{told:?}");
    assert!(told[3].ends_with("; DOCKET_PORT is one"), "{told:?}");
    let told = checked(&["--port", "9"], |_, is_sound| {
        assert!(is_sound);
        Vec::new()
    });
    assert_eq!(told.len(), 1, "a variable that sets nothing is a fault by itself: {told:?}");
}

#[test]
fn a_start_warns_of_variables_that_set_nothing() {
    let mut settings = typed(&[]).settings;
    settings.unknown = environment::unknown([OsString::from("DOCKET_PROT")].into_iter());
    let told = settings.warnings(true);
    assert!(told.len() == 1 && told[0].starts_with("DOCKET_PROT: docket has no such"), "{told:?}");
    assert_eq!(settings.warnings(false), [""; 0]);
    assert!(configured(typed(&[])).1.is_ok(), "and a server starts");
}

#[test]
fn many_faults_are_counted() {
    let names = (0..150).fold(String::from("[http]\n"), |text, n| text + &format!("x{n} = 1\n"));
    let file = file(&names);
    let told = faults(&with(&file));
    assert_eq!((told.len(), told[100].as_str()), (101, "and: 50 more faults"));
}

#[test]
fn a_line_of_another_form_is_refused_in_the_words_of_the_command_line() {
    let refused = |line: &[&str]| parse(line.iter().map(OsString::from)).unwrap_err().to_string();
    assert!(refused(&["docket", "serve", "--prot", "1"]).contains("'--port'"));
    assert!(refused(&["docket", "pull", "--log", "x"]).contains("[possible values: text, json]"));
    assert!(refused(&["docket", "serve", "--help"]).contains("Possible values:"));
    assert!(refused(&["docket", "config", "check", "--port"]).contains("value is required"));
}

#[test]
fn each_line_says_where_its_setting_was_said() {
    let file = file("[http]\nport = 9000\n[profiles.\"a.b\"]\ntemperature = { noul = 1.5 }\n");
    let [flag, path] = with(&file);
    let text = shown(&[flag, path, "--offline", "--context", "2048", "--kv-bytes", "2GiB"]);
    for line in [
        "port = 9000  # file",
        "offline = true  # flag",
        "context = 2048  # flag",
        "kv_bytes = \"2GiB\"  # flag",
        "host = \"127.0.0.1\"  # default",
        "served_name = [\"qwen2.5-coder:1.5b\"]  # default",
        "tasks = \"on\"  # default",
        "step_target = \"200ms\"  # default",
        "# layout = as the model's profile says  # default",
        "# abstain_option = nothing  # default",
        "[profiles.\"a.b\"]",
        "temperature = { noul = 1.5 }  # file",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
}

#[test]
fn keys_are_counted_and_not_shown() {
    let flags = ["--api-key", "acme=s3cret", "--api-key", "s3cret2", "--host", "0.0.0.0"];
    let text = shown(&flags);
    assert!(text.contains("# api_key = 2 that are not shown  # flag"), "{text}");
    let (settings, config) = configured(typed(&flags));
    let json = settings.shown(&config.unwrap()).to_json();
    assert!(!text.contains("s3cret") && !json.to_string().contains("s3cret"));
    assert_eq!(json["http"].get("api_key"), None);
    assert_eq!((&json["http"]["port"], &json["model"]["context"]), (&8000.into(), &().into()));
    assert_eq!(json["http"]["insecure_open"], false);
    assert!(!format!("{:?}", typed(&flags)).contains("s3cret"));
    let told = faults(&["--api-key", "acme=s3cret", "--api-key", "s3cret"]).concat();
    assert!(told.contains("--api-key") && !told.contains("s3cret"), "{told}");
}

#[test]
fn every_setting_is_shown() {
    let text = shown(&[]);
    let example = example();
    for known in known::all() {
        let is_line = |line: &str| {
            let line = line.trim_start_matches(['#', ' ']);
            line.split(" = ").next() == Some(&known.name)
        };
        assert!(text.lines().any(is_line), "{}: {text}", known.name);
        assert!(example.lines().any(is_line), "{}: {example}", known.name);
    }
}

#[test]
fn the_explained_file_says_what_holds_without_it() {
    let all: String = example()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    assert!(all.contains("\nport = 8000\n") && all.contains("\nkv_bytes = \"auto\"\n"), "{all}");
    let (set, unset) = (file(&all), file(&example()));
    let mut read = config(&with(&set));
    assert_eq!(read.decision.profiles.len(), 1);
    read.decision.profiles.clear();
    assert_eq!(read, config(&[]));
    assert_eq!(config(&with(&unset)), config(&[]));
}

#[test]
fn a_check_and_a_show_have_the_settings_of_serve() {
    let of = |word: &str| {
        let line = ["docket", "config", word, "--port", "9", "--engine", "fake"];
        let typed = parse(line.into_iter().map(OsString::from)).unwrap();
        let Command::Config(arguments) = typed.cli.command else { panic!("not config") };
        match arguments.command {
            ConfigCommand::Check(serve) | ConfigCommand::Show(serve) => {
                (typed.settings.config(*serve, PathBuf::new()).unwrap(), typed.settings)
            }
            ConfigCommand::Example => panic!("{word}"),
        }
    };
    let (config, settings) = of("check");
    assert_eq!(config.http.port, 9);
    assert_eq!(of("show").0, config);
    let told = settings.summary();
    assert!(told.contains("2 by flag, 0 from the environment, there is no file"), "{told}");
}

/// Which settings, with which of the texts that each takes, and whether by flag or by file.
fn said() -> impl Strategy<Value = Vec<(usize, usize, bool)>> {
    vec((any::<usize>(), any::<usize>(), any::<bool>()), 0..40)
}

/// The settings that are said, without those that cannot be beside the others.
fn possible(said: &[(usize, usize, bool)], checker: &mut Checker) -> Vec<(Known, OsString, bool)> {
    let all: Vec<Known> = known::all().into_iter().filter(|known| !known.is_secret()).collect();
    let mut chosen: Vec<(Known, OsString, bool)> = Vec::new();
    for (setting, text, is_flag) in said {
        let known = &all[setting % all.len()];
        let taken = TEXTS.iter().map(OsString::from);
        let taken: Vec<_> = taken.filter(|text| checker.check(known, text).is_ok()).collect();
        let is_new = known.is_list() || chosen.iter().all(|(other, ..)| other.long != known.long);
        if is_new && let Some(text) = taken.get(text % taken.len().max(1)) {
            chosen.push((known.clone(), text.clone(), *is_flag));
        }
    }
    loop {
        let (_file, line) = line_of(&chosen);
        let Err(faults) = configured(parse(line).unwrap()).1 else { return chosen };
        let told: Vec<String> = faults.iter().map(|fault| format!("{fault} ")).collect();
        let count = chosen.len();
        chosen.retain(|(known, ..)| {
            let (flag, place) = (format!("--{}", known.long), known.place() + ":");
            let names = |told: &&String| {
                told.starts_with(&place)
                    || told.split([' ', ':', ',', ';']).any(|word| word == flag)
            };
            told.iter().find(names).is_none()
        });
        assert!(chosen.len() < count, "{told:?}");
    }
}

/// A command line, and the file that it names.
fn line_of(chosen: &[(Known, OsString, bool)]) -> (NamedTempFile, Vec<OsString>) {
    let in_file = |(known, _, is_flag): &&(Known, _, bool)| {
        !is_flag && !chosen.iter().any(|(other, _, is_flag)| *is_flag && other.long == known.long)
    };
    let mut tables = toml_edit::DocumentMut::new();
    for (known, text, _) in chosen.iter().filter(in_file) {
        let table = tables.entry(&known.table).or_insert_with(toml_edit::table);
        let text = text.to_str().unwrap();
        if known.is_list() {
            let list =
                table[&known.name].or_insert(toml_edit::array().into_value().unwrap().into());
            list.as_array_mut().unwrap().push(text);
        } else {
            table[&known.name] = toml_edit::value(text);
        }
    }
    let file = file(&tables.to_string());
    let mut line: Vec<OsString> = vec!["docket".into(), "serve".into()];
    line.extend(with(&file).map(OsString::from));
    for (known, text, _) in chosen.iter().filter(|(.., is_flag)| *is_flag) {
        if !known.is_switch() {
            line.push(assigned(&known.long, text));
        } else if crate::cli::switch::switch(text.to_str().unwrap()) == Ok(true) {
            line.push(format!("--{}", known.long).into());
        }
    }
    (file, line)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_shown_means_the_same_as_a_file(said in said()) {
        let chosen = possible(&said, &mut Checker::new());
        let (_file, line) = line_of(&chosen);
        let (settings, config) = configured(parse(line).unwrap());
        let config = config.unwrap();
        let text = settings.shown(&config).to_toml();
        let again = file(&text);
        let (shown_again, config_again) = configured(typed(&with(&again)));
        match config_again {
            Ok(config_again) => prop_assert_eq!(&config_again, &config, "{}", &text),
            Err(faults) => prop_assert!(false, "{:?}: {}", faults, text),
        }
        let json = settings.shown(&config).to_json();
        prop_assert_eq!(shown_again.shown(&config).to_json(), json);
    }
}
