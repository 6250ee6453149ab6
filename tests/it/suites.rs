//! Suites that others wrote, read from the folder that `NF_SUITES` names; without it each test says that
//! it is skipped. Each counts its cases, so that an empty folder is a failure.

// Files and shapes that are not as they must be are failures of the test; there is nothing to recover.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nf::model::hash::{Hash, canonical};
use nf::model::json::{self, FaultKind};
use nf::rules::schema;
use serde_json::Value;

/// The folder of one suite, if there are suites.
fn suite(name: &str) -> Option<PathBuf> {
    match std::env::var_os("NF_SUITES") {
        Some(folder) => Some(PathBuf::from(folder).join(name)),
        None => {
            crate::harness::skipped("NF_NEED_SUITES", "NF_SUITES names no folder");
            None
        }
    }
}

/// The files of a folder in order, those in its folders too.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// A file's name without its folder.
fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A JSON file of a suite as `serde_json` reads it: the suites hold what the guard refuses.
fn loose(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The lines of a file of numbers: the hex of an IEEE 754 double, a comma, the RFC 8785 text.
fn numbers(text: &str) -> usize {
    for line in text.lines() {
        let (bits, want) = line.split_once(',').unwrap();
        let number = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        assert_eq!(canonical(&number), want.as_bytes(), "{bits}");
        let read = json::parse(want.as_bytes());
        // The same number, read back, unless its text is an integer literal that the guard refuses.
        if let Ok(value) = read {
            assert_eq!(canonical(&value), want.as_bytes(), "{bits}");
        } else {
            assert_eq!(read.unwrap_err().kind, FaultKind::IntegerRange, "{bits}");
        }
    }
    text.lines().count()
}

#[test]
fn a_thousand_numbers_have_their_canonical_text() {
    assert_eq!(numbers(include_str!("../fixtures/jcs/numbers.txt")), 1_000);
}

#[test]
fn rfc_8785_vectors_and_numbers() {
    let Some(folder) = suite("jcs") else { return };
    let mut count = 0;
    for path in files(&folder.join("input")) {
        let value =
            json::parse(&fs::read(&path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let got = canonical(&value);
        let output = fs::read(folder.join("output").join(name(&path))).unwrap();
        assert_eq!(got, output.trim_ascii_end(), "{}", path.display());
        let hex =
            fs::read_to_string(folder.join("outhex").join(name(&path).replace(".json", ".txt"))).unwrap();
        let bytes: Vec<u8> =
            hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        assert_eq!(got, bytes, "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 6);
    assert_eq!(numbers(&fs::read_to_string(folder.join("es6_10k.txt")).unwrap()), 10_000);
}

/// Files that RFC 8259 allows and I-JSON does not, with the reason.
const REFUSED_BY_DESIGN: [(&str, FaultKind); 2] = [
    ("y_object_duplicated_key.json", FaultKind::DuplicateKey),
    ("y_object_duplicated_key_and_value.json", FaultKind::DuplicateKey),
];

#[test]
fn json_parsing_files() {
    let Some(folder) = suite("json-parsing") else { return };
    let (mut refused, mut accepted, mut free) = (0, 0, 0);
    for path in files(&folder.join("test_parsing")) {
        let name = name(&path);
        let result = json::parse(&fs::read(&path).unwrap());
        let by_design = REFUSED_BY_DESIGN.iter().find(|(refused, _)| *refused == name);
        match (name.split_once('_').map(|(kind, _)| kind), by_design) {
            (Some("n"), _) => {
                assert!(result.is_err(), "{name} was read");
                refused += 1;
            }
            (Some("y"), Some((_, kind))) => {
                assert_eq!(result.map_err(|fault| fault.kind), Err(*kind), "{name}");
                accepted += 1;
            }
            (Some("y"), None) => {
                let text = fs::read(&path).unwrap();
                assert_eq!(result, Ok(serde_json::from_slice(&text).unwrap()), "{name}");
                accepted += 1;
            }
            // Either answer is right; that there is one is the test.
            _ => free += 1,
        }
    }
    assert_eq!((refused, accepted, free), (188, 95, 35));
}

/// Tests of optional behaviour that is not held, with the reason.
const OPTIONAL_NOT_HELD: [(&str, &str); 2] = [
    // A quotient that overflows is no whole number; I-JSON advises against such numbers anyway.
    ("float-overflow.json", "valid if optional overflow handling is implemented"),
    // The vocabulary counts as asserted once a meta-schema names it; no schema of `nf` has its own.
    ("format-assertion.json", "format-assertion: false: invalid string"),
];

#[test]
fn json_schema_2020_12() {
    let Some(folder) = suite("json-schema") else { return };
    let mut remotes = BTreeMap::new();
    for path in files(&folder.join("remotes")) {
        let inner = path.strip_prefix(folder.join("remotes")).unwrap();
        remotes.insert(format!("http://localhost:1234/{}", inner.display()), loose(&path));
    }
    assert!(remotes.len() > 40, "{} remotes", remotes.len());
    let (mut count, mut sound, mut excused, mut wrong) = (0, 0, 0, Vec::new());
    // `format` is an annotation here, as the draft has it, so the tests of each format do not apply.
    for path in files(&folder.join("tests/draft2020-12")) {
        if path.components().any(|part| part.as_os_str() == "format") {
            continue;
        }
        for case in loose(&path).as_array().unwrap() {
            let alone = schema::compile_check(&case["schema"]).is_ok();
            for test in case["tests"].as_array().unwrap() {
                let result =
                    schema::check_with(&case["schema"], &test["data"], &|url| remotes.get(url).cloned());
                count += 1;
                // A frozen schema is not proved sound again; that must change no answer.
                if alone {
                    sound += 1;
                    let again = schema::check_sound(&case["schema"], &test["data"]);
                    assert_eq!(again, schema::check(&case["schema"], &test["data"]), "{path:?}: {test}");
                }
                let (file, text) = (name(&path), test["description"].as_str().unwrap_or_default());
                if OPTIONAL_NOT_HELD.contains(&(file.as_str(), text)) {
                    excused += 1;
                } else if result.as_ref().map(Vec::is_empty).ok() != test["valid"].as_bool() {
                    wrong.push(format!("{file}: {}: {text}: {result:?}", case["description"]));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(sound > 1_000, "{sound}");
    assert_eq!((count, excused), (1_461, OPTIONAL_NOT_HELD.len()));
}

#[test]
fn blake3_vectors() {
    let Some(folder) = suite("blake3") else { return };
    let vectors = loose(&folder.join("test_vectors.json"));
    let context = vectors["context_string"].as_str().unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    for case in cases {
        let length = usize::try_from(case["input_len"].as_u64().unwrap()).unwrap();
        let input: Vec<u8> = (0..=250).cycle().take(length).collect();
        let start = |field: &str| case[field].as_str().unwrap()[..64].to_owned();
        assert_eq!(Hash::of(&input).hex(), start("hash"), "{length}");
        assert_eq!(Hash::derive(context, &input).hex(), start("derive_key"), "{length}");
        let mut hasher = nf::model::hash::Hasher::default();
        input.chunks(1_000).for_each(|chunk| hasher.update(chunk));
        assert_eq!(hasher.finish().hex(), start("hash"), "{length}");
    }
    assert_eq!(cases.len(), 35);
}
