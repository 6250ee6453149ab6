//! The house rules, as far as a program can see them: which layer may name which, how long things are,
//! words that have one place or none, and an example in the help of every command.

use std::path::Path;

use crate::examples::{files_below, repository};

/// Lines of a file, lines of a function, characters of a line.
const LONGEST: (usize, usize, usize) = (400, 70, 110);

/// What each layer may name of the others, below `crate::`. `words` is the macro of `model`.
const LAYERS: &[(&str, &[&str])] = &[
    ("src/error.rs", &["error"]),
    ("src/model/", &["model", "error", "words"]),
    ("src/rules/", &["rules", "model", "error", "words"]),
    ("src/store/", &["store", "model", "error", "words"]),
    ("src/adapters/", &["adapters", "model", "error", "words"]),
    ("src/cli/", &["cli", "store", "rules", "adapters", "model", "error"]),
];

/// Words of code that are allowed only in these places; tests may say all but the first two.
const WORDS: &[(&str, &[&str])] = &[
    ("todo!", &[]),
    ("dbg!", &[]),
    (".unwrap()", &[]),
    (".expect(", &[]),
    ("println!", &["src/cli/output.rs"]),
    ("print!(", &["src/cli/output.rs"]),
    ("std::io::stdout", &["src/cli/output.rs"]),
    ("SystemTime::now", &["src/main.rs"]),
    ("Instant::now", &["src/main.rs", "src/store/lock.rs", "src/adapters/", "src/cli/mcp"]),
    ("env::var", &["src/main.rs"]),
    ("etcetera::", &["src/main.rs"]),
    ("ureq::", &["src/adapters/http"]),
    ("getrandom::", &["src/main.rs"]),
    ("std::fs", &["src/main.rs", "src/store/", "src/cli/input", "src/adapters/"]),
    ("std::process::", &["src/main.rs", "src/store/lock.rs", "src/adapters/"]),
    ("HashMap", &[]),
    ("HashSet", &[]),
    ("async ", &["src/cli/mcp"]),
    ("tokio::", &["src/cli/mcp"]),
    ("rmcp::", &["src/cli/mcp"]),
    ("unsafe ", &["src/store/index.rs", "src/store/index/pages.rs"]),
    ("allow(unsafe_code", &["src/store/index.rs", "src/store/index/pages.rs"]),
    ("heed::", &["src/store/index"]),
    ("serde_yaml", &["src/model/yaml.rs"]),
    ("fs2::", &["src/store/lock.rs"]),
    ("blake3::", &["src/model/hash.rs"]),
    ("boon::", &["src/rules/schema.rs", "src/rules/schema/"]),
    ("strsim::", &["src/rules/members.rs"]),
    ("walkdir::", &["src/store/"]),
];

/// One source file.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Whether the whole file is a test.
    fn is_test(&self) -> bool {
        let inner = self.path.contains("/tests/") || self.path.ends_with("/tests.rs");
        inner || self.path.starts_with("tests/") || self.path.starts_with("benches/")
    }

    /// The lines outside comments, numbered, with whether each is part of a test.
    fn code(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        let mut test = self.is_test();
        self.text.lines().enumerate().filter_map(move |(index, line)| {
            test |= line == "#[cfg(test)]";
            let bare = line.trim_start();
            (!bare.starts_with("//")).then_some((index + 1, line, test))
        })
    }
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let mut all = Vec::new();
    for folder in folders {
        for name in files_below(&repository(folder)).into_iter().filter(|name| name.ends_with(".rs")) {
            let path = format!("{folder}/{name}");
            let text = std::fs::read_to_string(repository(&path)).expect("a source");
            all.push(Source { path, text });
        }
    }
    all
}

#[track_caller]
fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn each_layer_names_only_those_below_it() {
    let mut found = Vec::new();
    for source in sources(&["src"]) {
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| source.path.starts_with(layer)) else {
            continue;
        };
        for (number, line, _) in source.code() {
            for (at, _) in line.match_indices("crate::") {
                let rest = &line[at + "crate::".len()..];
                let named = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                if !named.is_empty() && !allowed.contains(&named) {
                    found.push(format!("{}:{number} names {named}", source.path));
                }
            }
        }
    }
    none("imports go downward only", found);
}

#[test]
fn nothing_is_longer_than_it_may_be() {
    let (file, function, width) = LONGEST;
    let mut found = Vec::new();
    for source in sources(&["src", "tests", "benches"]) {
        let count = source.text.lines().count();
        if count > file {
            found.push(format!("{} has {count} lines, more than {file}", source.path));
        }
        for (index, line) in source.text.lines().enumerate().filter(|(_, line)| line.chars().count() > width)
        {
            found.push(format!("{}:{} has {} characters", source.path, index + 1, line.chars().count()));
        }
        found.extend(long_functions(&source, function));
    }
    none("too long", found);
}

/// Functions over a number of lines, from the line of `fn` to its closing brace at the same depth.
fn long_functions(source: &Source, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let lines: Vec<&str> = source.text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let words = ["pub ", "pub(crate) ", "pub(super) ", "const "];
        let bare = words.iter().fold(bare, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        if !bare.starts_with("fn ") {
            continue;
        }
        let close = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let length = lines[index..].iter().position(|line| *line == close).map_or(1, |length| length + 1);
        if length > limit {
            found.push(format!("{}:{} {length} lines: {}", source.path, index + 1, bare));
        }
    }
    found
}

#[test]
fn words_stand_only_where_they_may() {
    let mut found = Vec::new();
    for source in sources(&["src"]) {
        for (number, line, test) in source.code() {
            for (rank, (word, places)) in WORDS.iter().enumerate() {
                let free = (test && rank >= 2) || places.iter().any(|place| source.path.starts_with(place));
                if !free && names(line, word) {
                    found.push(format!("{}:{number} says {word}", source.path));
                }
            }
        }
    }
    none("words out of their place", found);
}

/// Whether a line of code names a word that does not begin inside another one, nor in a text.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let inside = before.is_some_and(|c| c.is_alphanumeric() || c == '_') && !word.starts_with('.');
        let quotes = line[..at].matches('"').count() - line[..at].matches("\\\"").count();
        !inside && quotes.is_multiple_of(2)
    })
}

#[test]
fn every_module_says_what_it_owns() {
    let bare = |source: &Source| !source.text.starts_with("//! ");
    let found =
        sources(&["src", "tests/it"]).into_iter().filter(|source| bare(source)).map(|s| s.path.clone());
    none("the first line of a module is //!", found.collect());
}

#[test]
fn every_command_has_an_example_in_its_help() {
    fn walk(command: &clap::Command, words: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let words = format!("{words} {}", inner.get_name());
            walk(inner, &words, found);
            let help = [inner.get_after_help(), inner.get_after_long_help()];
            let shown = help.iter().flatten().any(|help| help.to_string().contains(words.as_str()));
            if !shown && !inner.has_subcommands() {
                found.push(words);
            }
        }
    }
    let mut found = Vec::new();
    walk(&nf::cli::command(), "nf", &mut found);
    none("commands without an example", found);
}

#[test]
fn numbers_are_read_and_written_as_the_fingerprint_needs() {
    let manifest = std::fs::read_to_string(repository("Cargo.toml")).expect("a manifest");
    let json = manifest.lines().find(|line| line.starts_with("serde_json = ")).expect("serde_json");
    assert!(json.contains("float_roundtrip"), "{json}");
    // What any package of the tree asks for counts for all: ask cargo what was chosen.
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,build,dev", "--invert", "serde_json"])
        .args(["--prefix", "none", "--format", "{p} {f}", "--depth", "0"])
        .current_dir(repository(""))
        .output()
        .expect("cargo");
    let tree = String::from_utf8_lossy(&tree.stdout).into_owned();
    assert!(tree.starts_with("serde_json v") && tree.contains("float_roundtrip"), "{tree}");
    for feature in ["arbitrary_precision", "preserve_order"] {
        assert!(!tree.contains(feature), "{feature} is on: {tree}");
    }
}

#[test]
fn lints_that_ci_denies_are_on() {
    let manifest = std::fs::read_to_string(repository("Cargo.toml")).expect("a manifest");
    for lint in ["missing_docs = \"warn\"", "unsafe_code = \"deny\"", "unwrap_used = \"warn\""] {
        assert!(manifest.contains(lint), "{lint}");
    }
    for file in ["src/store/index.rs", "src/store/index/pages.rs"] {
        let source = std::fs::read_to_string(repository(file)).expect("a source");
        for word in ["allow(unsafe_code", "unsafe {"] {
            assert_eq!(
                source.matches(word).count(),
                1,
                "{file}: one function opens the map, one rests it: {word}"
            );
        }
    }
    let run = std::fs::read_to_string(repository(".ci/run")).expect(".ci/run");
    assert!(run.contains("cargo clippy --locked --all-targets -- -D warnings"), "clippy denies warnings");
}

#[test]
fn versions_are_pinned() {
    let manifest = std::fs::read_to_string(repository("Cargo.toml")).expect("a manifest");
    let start = manifest.find("[dependencies]").expect("dependencies");
    let end = manifest.find("[lints.rust]").expect("lints");
    let loose = manifest[start..end].lines().filter(|line| line.contains(" = ") && !line.contains("\"="));
    none("dependencies without an exact version", loose.map(str::to_owned).collect());
}

/// No file of the repository names the address of a package registry: whoever builds has their own.
#[test]
fn no_file_names_a_registry() {
    let addresses =
        ["crates".to_owned() + ".io", "pypi".to_owned() + ".org", "registry.".to_owned() + "npmjs"];
    let folders = ["src", "tests", "docs", "examples", "benches", ".ci"];
    let files = folders.iter().flat_map(|folder| {
        files_below(&repository(folder)).into_iter().map(move |name| format!("{folder}/{name}"))
    });
    let alone = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml", "deny.toml", "clippy.toml"];
    let mut found = Vec::new();
    for path in files.chain(alone.map(str::to_owned)) {
        let bytes = std::fs::read(Path::new(&repository(&path))).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        found.extend(
            addresses.iter().filter(|address| text.contains(*address)).map(|a| format!("{path}: {a}")),
        );
    }
    none("a registry's address", found);
}
