//! The documentation is true: every block of the README is run again and compared, the generated pages
//! are generated again, and every test that a page names exists. `NF_UPDATE_DOCS=1` rewrites what is
//! generated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use nf::error::Kind;

use crate::examples::{example_project, files_below, repository};
use crate::harness::{NF, Project};

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn updating() -> bool {
    std::env::var_os("NF_UPDATE_DOCS").is_some()
}

/// Compares a generated page with the one that is committed, or writes it.
#[track_caller]
fn generated(path: &str, text: &str) {
    let whole = repository(path);
    if updating() {
        std::fs::create_dir_all(whole.parent().expect("a folder")).expect("folders");
        std::fs::write(&whole, text).expect("written");
        return;
    }
    let there = std::fs::read_to_string(&whole).unwrap_or_default();
    assert!(there == text, "{path} is not what is generated; NF_UPDATE_DOCS=1 cargo test --test it docs");
}

/// One fenced block of a page.
struct Block {
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(_), true) => inside = false,
            (Some(language), false) => {
                inside = true;
                found.push(Block { language: language.to_owned(), text: String::new() });
            }
            (None, true) => {
                let block = found.last_mut().expect("an open block");
                block.text += line;
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    found
}

/// The commands of a console block, each with what it printed.
fn commands(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => found.push((command.to_owned(), String::new())),
            None => {
                let last = found.last_mut().expect("a console block begins with a command");
                last.1 += line;
                last.1.push('\n');
            }
        }
    }
    found
}

/// Ids, hashes, times and what is counted in bytes, each by a name that says which it is: the first id of
/// its kind is `j-1`, the next `j-2`; so the same thing must come again where it came before.
fn normal(text: &str, seen: &mut BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || "-_:.".contains(*c)).collect();
        if word.is_empty() {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        rest = &rest[word.len()..];
        let bare = word.trim_end_matches([':', '.', '-']);
        out += &named(bare, seen).unwrap_or_else(|| bare.to_owned());
        out += &word[bare.len()..];
    }
    out
}

fn named(word: &str, seen: &mut BTreeMap<String, String>) -> Option<String> {
    let base32 = |id: &str| id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let hex = |id: &str| id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let kind = match word.split_once('-') {
        Some((letter, id)) if letter.len() == 1 && id.len() == 12 && base32(id) => letter,
        _ if word.len() >= 12 && hex(word) => "HASH",
        _ if word.contains(':') && word.rsplit(':').next().is_some_and(|end| end.len() >= 16 && hex(end)) => {
            "HASH"
        }
        _ if word.len() >= 19 && word.starts_with("20") && word.contains('T') => {
            return Some("TIME".to_owned());
        }
        _ if word.len() == 10 && word.starts_with("20") && word.matches('-').count() == 2 => {
            return Some("DATE".to_owned());
        }
        _ if word.len() == 5 && word.as_bytes()[2] == b':' => return Some("HOUR".to_owned()),
        _ => return None,
    };
    let count = seen.values().filter(|name| name.starts_with(&format!("{kind}-"))).count();
    let name = seen.entry(word.to_owned()).or_insert_with(|| format!("{kind}-{}", count + 1));
    Some(name.clone())
}

/// Runs one line of a console block as somebody at a shell would, in the folder; both streams.
fn run(folder: &Path, command: &str) -> String {
    let binaries = Path::new(NF).parent().expect("a folder").to_path_buf();
    let path = [binaries, PathBuf::from("/usr/local/bin"), PathBuf::from("/usr/bin"), PathBuf::from("/bin")];
    let output = Command::new("bash")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::join_paths(path).expect("a path"))
        .env("EXAMPLES", repository("examples"))
        .output()
        .unwrap_or_else(|error| panic!("{command}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.replace(&*folder.to_string_lossy(), "FOLDER")
}

/// A page with the console blocks run again: what stands there, and what came.
fn replayed(page: &str, project: &Project) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for block in blocks(page) {
        match block.language.as_str() {
            "yaml" if block.text.contains("\nsubject: ") => project.write("review.yaml", &block.text),
            "console" => {
                for (command, printed) in commands(&block.text) {
                    let got = run(project.path(), &command);
                    all.push((command, printed, got));
                }
            }
            _ => {}
        }
    }
    all
}

#[test]
fn every_console_block_of_the_readme_is_what_comes() {
    let page = read("README.md");
    let project = example_project();
    let replayed = replayed(&page, &project);
    assert!(replayed.len() > 10, "the blocks were not found");
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    let mut compared = replayed.iter().map(|(command, printed, got)| {
        let stands = normal(&format!("$ {command}\n{printed}"), &mut old);
        let came = normal(&format!("$ {command}\n{got}"), &mut new);
        (stands, came, got)
    });
    let differs = compared.find(|(stands, came, _)| stands != came);
    match differs {
        Some(_) if updating() => rewrite("README.md", page, &replayed),
        Some((stands, came, got)) => assert_eq!(stands, came, "what came is:\n{got}"),
        None => {}
    }
}

/// Puts what came in the place of what stood there.
fn rewrite(path: &str, mut page: String, replayed: &[(String, String, String)]) {
    let mut from = 0;
    for (command, printed, got) in replayed {
        let old = format!("$ {command}\n{printed}");
        let at = from + page[from..].find(&old).expect("the block that was read");
        let new = format!("$ {command}\n{got}");
        page.replace_range(at..at + old.len(), &new);
        from = at + new.len();
    }
    std::fs::write(repository(path), page).expect("written");
}

#[test]
fn the_readme_lists_every_exit_code_and_the_two_commands() {
    let page = read("README.md");
    let mut codes: BTreeSet<u8> = Kind::ALL.iter().map(|kind| kind.exit()).collect();
    codes.insert(0);
    for code in codes {
        assert!(page.contains(&format!("\n| {code} | ")), "the README's table lacks exit code {code}");
    }
    let shell: String = blocks(&page).into_iter().filter(|b| b.language == "sh").map(|b| b.text).collect();
    for command in ["examples/daily-path.sh", "cargo test --locked"] {
        assert!(shell.lines().any(|line| line == command), "{command}");
    }
}

/// The pages that are written by hand, from the repository's root.
fn pages() -> Vec<String> {
    let docs = files_below(&repository("docs")).into_iter().filter(|name| name.ends_with(".md"));
    let docs = docs.map(|name| format!("docs/{name}"));
    docs.chain(["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(str::to_owned)).collect()
}

#[test]
fn every_test_and_file_that_a_page_names_exists() {
    let mut missing = Vec::new();
    for page in pages() {
        let text = read(&page);
        for name in text.split('`').skip(1).step_by(2) {
            let Some((file, test)) = name.split_once(".rs::") else {
                let path = name.split(['#', ' ']).next().unwrap_or_default();
                let ours = ["src/", "tests/", "docs/", "examples/", "benches/", ".ci/"];
                let path = path.trim_end_matches('/');
                if ours.iter().any(|folder| path.starts_with(folder))
                    && !path.contains('*')
                    && !path.contains('N')
                    && !repository(path).exists()
                {
                    missing.push(format!("{page}: {name}"));
                }
                continue;
            };
            let source = std::fs::read_to_string(repository(&format!("{file}.rs"))).unwrap_or_default();
            if !source.contains(&format!("fn {test}(")) {
                missing.push(format!("{page}: {name}"));
            }
        }
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let folder = Path::new(&page).parent().unwrap_or(Path::new(""));
            let path = target.split('#').next().unwrap_or_default();
            if !target.contains("://") && !path.is_empty() && !repository("").join(folder).join(path).exists()
            {
                missing.push(format!("{page}: link to {target}"));
            }
        }
    }
    assert!(missing.is_empty(), "named and not there:\n  {}", missing.join("\n  "));
}

#[test]
fn the_contracts_page_has_a_row_for_every_section() {
    let page = read("docs/contracts.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let (sections, invariants) = ([("CP", 12, 8), ("SER", 13, 8), ("SR", 12, 8)], "inv");
    for (contract, sections, last) in sections {
        for section in 1..=sections {
            let start = format!("| {contract} {section:02} ");
            assert!(rows.iter().any(|row| row.starts_with(&start)), "no row {start}");
        }
        for invariant in 1..=last {
            let start = format!("| {contract} {invariants} {invariant} ");
            assert!(rows.iter().any(|row| row.starts_with(&start)), "no row {start}");
        }
    }
    for row in rows.iter().filter(|row| row.starts_with("| CP") || row.starts_with("| S")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        assert_eq!(cells.len(), 4, "{row}");
        assert!(cells[3].contains(".rs::"), "no test: {row}");
    }
}

#[test]
fn the_dependencies_page_names_every_direct_dependency() {
    let manifest = read("Cargo.toml");
    let start = manifest.find("[dependencies]").expect("dependencies");
    let end = manifest.find("[lints.rust]").expect("lints");
    let page = read("docs/dependencies.md");
    for line in manifest[start..end].lines() {
        let Some((name, _)) = line.split_once(" = ") else { continue };
        assert!(page.contains(&format!("| {name} |")), "docs/dependencies.md lacks {name}");
    }
    for row in page.lines().filter(|row| row.starts_with("| ") && !row.starts_with("| package ")) {
        let name = row.split(' ').nth(1).unwrap_or_default();
        assert!(manifest.contains(&format!("\n{name} = ")), "docs/dependencies.md has a row for {name}");
    }
}

#[test]
fn the_command_line_page_is_generated() {
    if !cfg!(feature = "mcp") {
        eprintln!("SKIPPED: the page is of the whole program, and this one is built without parts of it");
        return;
    }
    fn help(command: &clap::Command, words: &str, level: usize, page: &mut String) {
        let text = command.clone().bin_name(words).render_long_help().to_string();
        let text: Vec<&str> = text.lines().map(str::trim_end).collect();
        let text = text.join("\n");
        // What every command takes stands once, at the top.
        let own = match text.find("\nGlobal options:") {
            Some(at) if level > 1 => {
                let rest = &text[at + 1..];
                let examples = rest.find("\nExample").map_or("", |at| &rest[at..]);
                format!("{}\n{examples}", &text[..at])
            }
            _ => text,
        };
        let (hashes, own) = ("#".repeat(level.min(3)), own.trim_end());
        *page += &format!("\n{hashes} {words}\n\n```text\n{own}\n```\n");
        for inner in
            command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
        {
            help(inner, &format!("{words} {}", inner.get_name()), level + 1, page);
        }
    }
    let mut page = "# Command line\n\nGenerated from the program's own help; do not edit \
        (`NF_UPDATE_DOCS=1 cargo test --test it docs`).\nThe options under \"Global options\" belong to \
        every command and are listed once.\n"
        .to_owned();
    let mut command = nf::cli::command().term_width(100);
    command.build();
    help(&command, "nf", 1, &mut page);
    page += "\n## Error kinds\n\nThe words in `error.kind` of `--json`, with exit code and general next \
        step.\n\n";
    page += &kinds();
    page += &limits();
    generated("docs/cli.md", &page);
}

fn kinds() -> String {
    let row = |kind: &Kind| format!("| `{}` | {} | {} |\n", kind.word(), kind.exit(), kind.fix());
    let rows: String = Kind::ALL.iter().map(row).collect();
    format!("| kind | exit | next step |\n|---|---|---|\n{rows}")
}

/// What is `too_large`, from the constants of the program.
fn limits() -> String {
    use nf::{model, rules, store};
    let (day, mib) = (24 * 60 * 60 * 1000, 1024 * 1024);
    let rows = [
        ("job file or contract pack in YAML", format!("{} KiB", model::yaml::SIZE_LIMIT / 1024)),
        ("any file of the user's inside `.novelforge/`", format!("{} KiB", store::USER_FILE_LIMIT / 1024)),
        ("depth of any JSON or YAML", model::json::DEPTH_LIMIT.to_string()),
        ("integer literal", format!("±{}", model::json::INTEGER_LIMIT)),
        ("artifacts of a job", rules::jobfile::MAX_ARTIFACTS.to_string()),
        ("whole input of a job", format!("{} MiB", rules::freeze::MAX_INPUT / mib)),
        ("pasted reply", format!("{} MiB", rules::intake::MAX_BYTES as u64 / mib)),
        ("the answer in it", format!("{} KiB", rules::binding::MAX_RESULT / 1024)),
        ("`reason` of a reviewer who cannot judge", format!("{} characters", rules::binding::MAX_REASON)),
        ("replies that fail before an attempt ends", rules::lease::MAX_INVALID.to_string()),
        ("attempts of a question by packet", rules::lease::RELAY_MAX_ATTEMPTS.to_string()),
        ("time that a packet is out", format!("{} days", rules::lease::RELAY_TTL_MS / day)),
        ("bindings of a checkpoint", format!("{} KiB", rules::checkpoint::MAX_BINDINGS / 1024)),
        ("detail, model or program of a capability", format!("{} bytes", rules::capability::MAX_TEXT)),
        ("models of a capability", rules::capability::MAX_MODELS.to_string()),
        ("time that evidence counts", format!("{} days", rules::capability::MAX_MS / day)),
        ("payload of an event", format!("{} KiB", rules::event::MAX_PAYLOAD / 1024)),
        ("depth of a payload", rules::event::MAX_DEPTH.to_string()),
        ("artifacts of an event", rules::event::MAX_ARTIFACTS.to_string()),
        ("`actor`, `transport` or `ref` of an event", format!("{} bytes", rules::event::MAX_STATED)),
        ("body of a delivery of GitHub", format!("{} MiB", rules::github::MAX_BODY / mib)),
        ("response of an endpoint", format!("{} MiB", nf::adapters::http::MAX_RESPONSE / mib)),
        ("record in the log", format!("{} KiB", store::LINE_LIMIT / 1024)),
    ];
    let rows: String = rows.iter().map(|(what, most)| format!("| {what} | {most} |\n")).collect();
    format!("\n## Limits\n\n| what | at most |\n|---|---|\n{rows}")
}

#[test]
fn the_json_schemas_are_generated() {
    let mut names = BTreeSet::new();
    for (name, schema) in nf::cli::schemas::documents() {
        let file = nf::cli::schemas::file(&name);
        let text = serde_json::to_string_pretty(&schema).expect("a schema");
        generated(&format!("docs/json/{file}"), &format!("{text}\n"));
        names.insert(file);
    }
    let there: BTreeSet<String> = files_below(&repository("docs/json")).into_iter().collect();
    assert_eq!(there, names, "a schema that no command has");
}
