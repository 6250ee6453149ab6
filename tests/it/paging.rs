//! A list a page at a time while others write: nothing is passed over and nothing comes twice, with an index
//! and without one. A token is a place in the log and nothing else.

use serde_json::Value;

use crate::expect::{done, records, refused, silent};
use crate::faults::tools::twin;
use crate::harness::{Packet, Project};
use crate::index::long;

/// A question of its own, asked, answered and consumed in a session of its own. Gives session and job.
fn round(project: &Project, number: usize) -> (String, String) {
    let job = project.read("job.yaml").replace("novel/pride/ch01", &format!("novel/pride/q{number}"));
    let file = format!("job-{number}.yaml");
    project.write(&file, job);
    let session = project.start();
    let nf = |words: &[&str]| project.nf(&[words, &["--session", &session]].concat());
    nf(&["freeze", &file]).expect(0);
    let packet = Packet::read(&nf(&["packet"]).expect(0).stdout);
    project.nf_with(&["reply", "-"], packet.verdict("accept").as_bytes()).expect(0);
    nf(&["consume", "--as", "gate/other"]).expect(0);
    (session, packet.job)
}

/// Ids of a page, and the token of the next.
fn page(project: &Project, words: &[&str]) -> (Vec<String>, Option<String>) {
    let data = silent(project, &[&["list"], words].concat(), b"");
    let items = data["items"].as_array().expect("items").clone();
    let ids = items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect();
    (ids, data["next"].as_u64().map(|token| token.to_string()))
}

fn all(project: &Project, words: &[&str]) -> Vec<String> {
    page(project, &[words, &["--limit", "1000"]].concat()).0
}

/// All pages of two, with a writer between the first of them.
fn pages(project: &Project, words: &[&str], number: &mut usize) -> Vec<String> {
    let words = [words, &["--limit", "2"]].concat();
    let (mut ids, mut next) = page(project, &words);
    let end = *number + 2;
    while let Some(token) = next {
        if *number < end {
            *number += 1;
            round(project, *number);
        }
        let (more, after) = page(project, &[&words[..], &["--after", &token]].concat());
        assert!(more.len() == 2 || after.is_none(), "{words:?}: {more:?}");
        ids.extend(more);
        next = after;
    }
    ids
}

#[test]
fn pages_stay_whole_while_others_write_for_every_kind_and_filter() {
    let (mut project, old) = long();
    project.set("NF_SESSION", "");
    let mut rounds: Vec<_> = (0..3).map(|number| round(&project, number)).collect();
    let (session, job) = rounds.pop().expect("a round");
    let filters: [&[&str]; 18] = [
        &["session"],
        &["session", "--state", "created"],
        &["session", "--state", "running"],
        &["session", "--resource", "novel/pride"],
        &["run"],
        &["run", "--session", &old],
        &["run", "--resource", "novel/pride"],
        &["checkpoint"],
        &["checkpoint", "--session", &session],
        &["job"],
        &["job", "--resource", "novel/pride/q1"],
        &["handoff", "--state", "completed"],
        &["handoff", "--job", &job],
        &["attempt"],
        &["attempt", "--job", &job, "--session", &session],
        &["result", "--state", "valid"],
        &["result", "--job", &job],
        &["receipt"],
    ];
    let bare = twin(&project);
    std::fs::remove_dir_all(bare.at(".novelforge/index")).expect("an index");
    std::fs::write(bare.at(".novelforge/index"), b"").expect("a file, so that none is made");
    for project in [&project, &bare] {
        let mut number = 100;
        for words in filters {
            let whole = all(project, words);
            assert_eq!(pages(project, words, &mut number), whole, "{words:?}");
            let distinct: std::collections::BTreeSet<&String> = whole.iter().collect();
            assert_eq!(distinct.len(), whole.len(), "{words:?}");
        }
        assert!(number > 110, "there were pages to write between: {number}");
        project.nf(&["verify"]).expect(0);
    }
    assert!(bare.at(".novelforge/index").is_file());
}

#[test]
fn a_token_is_a_place_in_the_log_whatever_it_came_from() {
    let (mut project, _) = long();
    project.set("NF_SESSION", "");
    for number in 0..3 {
        round(&project, number);
    }
    for wrong in ["x", "-1", "1.5", "18446744073709551616", "s-4q2mk7ta0xwd", "1,2"] {
        refused(&project, &["list", "session", &format!("--after={wrong}")], 2, "usage");
    }
    let words = ["session", "--limit", "2"];
    let (first, token) = page(&project, &words);
    let token = token.expect("a token");
    // Of another kind or filter: what is older than that place.
    for words in [&["run"][..], &["job"], &["session", "--state", "running"], &["receipt"]] {
        let whole = all(&project, words);
        let rest = all(&project, &[words, &["--after", &token]].concat());
        assert!(whole.ends_with(&rest) && !rest.is_empty(), "{words:?}");
    }
    assert_eq!(page(&project, &["session", "--after", "0"]).0, Vec::<String>::new());
    assert_eq!(all(&project, &["session", "--after", &u64::MAX.to_string()]), all(&project, &["session"]));
    // After the index is gone, and in a copy of the store.
    let whole = all(&project, &["session"]);
    let rest = all(&project, &["session", "--after", &token]);
    assert_eq!([first, rest.clone()].concat(), whole);
    assert_eq!(all(&twin(&project), &["session", "--after", &token]), rest);
    std::fs::remove_dir_all(project.at(".novelforge/index")).expect("an index");
    assert_eq!(all(&project, &["session", "--after", &token]), rest);
}

#[test]
fn the_next_page_is_named_with_all_that_chose_this_one() {
    let project = Project::new();
    for _ in 0..3 {
        project.start();
    }
    let words = ["list", "run", "--state", "running", "--resource", "novel/pride", "--limit", "2"];
    let news = project.nf(&words).expect(0).stderr;
    let next = news.lines().find_map(|line| line.split_once("nf list ")).expect("a next command").1;
    assert!(next.starts_with("run --state running --resource novel/pride --limit 2 --after "), "{next}");
    let words: Vec<&str> = std::iter::once("list").chain(next.split(' ')).collect();
    assert_eq!(done(&project, &words)["items"].as_array().expect("items").len(), 1);
}

#[test]
fn a_filter_that_no_object_of_the_kind_can_meet_is_refused() {
    let project = Project::new();
    let packet = project.ask();
    for (words, what) in [
        (&["job", "--state", "running"][..], "no job has a state"),
        (&["session", "--state", "runing"], "\"runing\" is the state of no session"),
        (&["result", "--resource", "novel/pride"], "no result has a resource"),
        (&["session", "--job", &packet.job], "no session has a job"),
    ] {
        let error = refused(&project, &[&["list"], words].concat(), 2, "usage");
        assert_eq!(error["message"], what);
    }
    assert_eq!(all(&project, &["job", "--job", &packet.job]), [packet.job]);
}

#[test]
fn the_log_shows_its_newest_records_with_an_index_and_without() {
    let (project, _) = long();
    let newest = |limit: usize| -> Vec<Value> {
        let all = records(&project);
        all[all.len().saturating_sub(limit)..].to_vec()
    };
    for limit in [1, 7, 10_000] {
        let shown = project.nf(&["log", "--limit", &limit.to_string(), "--json"]).expect(0).stdout;
        let shown: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(shown, newest(limit));
    }
}
