//! `verify` proves that the store still holds a moment that a writer printed, and a damaged blob is
//! noticed before anything is made of it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::expect::{answer, done, failed, names, refused, shown, silent};
use crate::harness::{Packet, Project, report};

const GATE: &str = "gate/novel/pride/ch01/reader_reaction";

/// The positions that a writer's news name, such as `3:3266e34b2a4cb208`.
fn positions(news: &str) -> Vec<String> {
    news.lines().filter_map(|line| line.strip_prefix("record ")).map(str::to_owned).collect()
}

/// The daily path by hand; gives the position that each writer printed.
fn daily(project: &Project) -> Vec<String> {
    let start = ["start", "--resource", "novel/pride", "--task", "review"];
    let mut printed = Vec::new();
    for words in [&start[..], &["freeze", "job.yaml"]] {
        printed.extend(positions(&project.nf(words).expect(0).stderr));
    }
    let out = project.nf(&["packet"]).expect(0);
    printed.extend(positions(&out.stderr));
    let reply = Packet::read(&out.stdout).verdict("accept");
    printed.extend(positions(&project.nf_with(&["reply"], reply.as_bytes()).expect(0).stderr));
    for words in [&["consume", "--as", GATE][..], &["resume"]] {
        printed.extend(positions(&project.nf(words).expect(0).stderr));
    }
    printed
}

#[test]
fn the_daily_path_verifies_and_every_position_that_was_printed_is_there() {
    let project = Project::new();
    let printed = daily(&project);
    assert_eq!(printed.len(), 6, "each writer names its record once: {printed:?}");
    let report = silent(&project, &["verify"], b"");
    assert_eq!(report["findings"], json!([]));
    assert_eq!((report["receipts"].as_u64(), report["blobs"].as_u64()), (Some(1), Some(3)), "{report}");
    assert!(report["at"].is_null(), "nothing was asked for: {report}");
    for short in &printed {
        let (seq, hash) = short.split_once(':').expect("a position");
        assert_eq!(hash.len(), 16, "{short}");
        let at = silent(&project, &["verify", "--at", short], b"")["at"].clone();
        assert_eq!(at["seq"].to_string(), seq);
        let whole = at["hash"].as_str().expect("a hash");
        assert_eq!((whole.len(), &whole[..16]), (64, hash));
        for same in [whole.to_owned(), whole.to_uppercase(), hash.to_uppercase(), whole[..40].to_owned()] {
            let ran = project.nf(&["verify", "--at", &format!("{seq}:{same}")]).expect(0);
            assert!(ran.stdout.contains(&format!("contains {seq}:{whole}")), "{}", ran.stdout);
        }
    }
    let head = format!("{}:", report["records"]);
    assert!(printed.last().expect("one").starts_with(&head), "the newest is the head: {printed:?} {head}");
}

#[test]
fn a_position_that_the_store_does_not_hold_is_damage_and_a_malformed_one_is_usage() {
    let project = Project::new();
    let printed = daily(&project);
    let (seq, hash) = printed[2].split_once(':').expect("a position");
    let last = format!("{hash}{}", "0".repeat(48));
    let other = printed[3].split_once(':').expect("a position").1;
    let flipped = format!("{}{}", &hash[..15], if hash.ends_with('0') { "1" } else { "0" });
    for wrong in [flipped.as_str(), other, last.as_str()] {
        let error = refused(&project, &["verify", "--at", &format!("{seq}:{wrong}")], 11, "damaged");
        names(&error["cause"], &[&format!("record {seq} has hash {hash}")]);
        names(&error["fix"], &["nf doctor"]);
    }
    for absent in ["0", "8", "99", "18446744073709551615"] {
        let error = refused(&project, &["verify", "--at", &format!("{absent}:{hash}")], 11, "damaged");
        names(&error["cause"], &[&format!("no record {absent}")]);
    }
    let long = "a".repeat(65);
    let short = &hash[..15];
    for bad in [
        hash.to_owned(),
        seq.to_owned(),
        format!("{seq}:"),
        format!(":{hash}"),
        format!("{seq}:{short}"),
        format!("{seq}:{long}"),
        format!("{seq}:{short}g"),
        format!("{seq}:{short}\u{e9}"),
        format!("-{seq}:{hash}"),
        format!("{seq}.0:{hash}"),
        format!("18446744073709551616:{hash}"),
        format!("{seq} {hash}"),
        format!("record {seq}:{hash}"),
        String::new(),
    ] {
        refused(&project, &["verify", &format!("--at={bad}")], 2, "usage");
    }
}

#[test]
fn a_cut_log_still_proves_what_is_left_and_no_longer_what_was_cut() {
    let project = Project::new();
    let printed = daily(&project);
    let log = project.read(".novelforge/log/00000001.jsonl");
    let last = log.trim_end().rfind('\n').expect("lines") + 1;
    project.write(".novelforge/log/00000001.jsonl", &log[..last]);
    std::fs::remove_file(project.at(".novelforge/head")).expect("a head");
    let gone = printed.last().expect("one");
    failed(&project, &["verify", "--at", gone], b"", 11, "damaged");
    let ran = project.nf(&["verify", "--at", &printed[0], "--json"]).json();
    assert_eq!(report(&ran)["at"]["seq"], 2, "{ran}");
}

/// The file of a blob that an object names.
#[track_caller]
fn blob(project: &Project, hash: &Value) -> PathBuf {
    let hash = hash.as_str().unwrap_or_else(|| panic!("no hash: {hash}"));
    project.at(&format!(".novelforge/blobs/{}/{hash}", &hash[..2]))
}

/// Every way in which a blob can be damaged.
const DAMAGES: [&str; 4] = ["flipped", "cut", "emptied", "gone"];

/// Damages a file, and gives its bytes for putting it back.
fn damage(path: &PathBuf, how: &str) -> Vec<u8> {
    let whole = std::fs::read(path).expect("a blob");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let mut other = whole.clone();
    match how {
        "flipped" => other[whole.len() / 2] ^= 1,
        "cut" => other.truncate(whole.len() - 1),
        "emptied" => other.clear(),
        _ => {
            std::fs::remove_file(path).expect("removed");
            return whole;
        }
    }
    std::fs::write(path, other).expect("damaged");
    whole
}

/// Under each damage of a blob the commands are refused and write nothing, `verify` and `doctor` name it;
/// put back, it is as if nothing had been.
#[track_caller]
fn stops(project: &Project, path: &PathBuf, commands: &[&[&str]]) {
    for how in DAMAGES {
        let whole = damage(path, how);
        for command in commands {
            let error = refused(project, command, 11, "damaged");
            names(&error["fix"], &["nf doctor"]);
        }
        for command in ["verify", "doctor"] {
            let ran = project.nf(&[command, "--json"]).json();
            let hash = path.file_name().expect("a name").to_string_lossy().into_owned();
            let named = report(&ran)["findings"].to_string().contains(&hash[..16]);
            // The doctor does not read every blob; that is what verify is for.
            assert!(named || command == "doctor" && how != "gone", "{command} after {how}: {ran}");
        }
        project.nf(&["verify"]).expect(11);
        std::fs::write(path, whole).expect("put back");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o400)).expect("a mode");
    }
    project.nf(&["verify"]).expect(0);
}

#[test]
fn no_packet_is_made_of_a_damaged_job_or_artifact() {
    let project = Project::new();
    project.start();
    let job = done(&project, &["freeze", "job.yaml"])["job"].as_str().expect("an id").to_owned();
    let packets: &[&[&str]] =
        &[&["packet"], &["packet", &job, "--for", "human"], &["packet", "--for", "agent", "--out", "p.json"]];
    for pointer in ["/blob", "/places/0/hash"] {
        stops(&project, &blob(&project, &shown(&project, &job, pointer)), packets);
        assert!(!project.at("p.json").exists(), "no packet was written");
    }
    let kept = std::fs::read_dir(project.at(".novelforge/packets")).map_or(0, Iterator::count);
    assert_eq!(kept, 0, "no packet was kept");
    done(&project, &["packet"]);
}

#[test]
fn nothing_is_consumed_while_the_job_or_the_answer_is_damaged() {
    let project = Project::new();
    let packet = project.ask();
    let result = answer(&project, &packet, "reject");
    let consumes: &[&[&str]] = &[
        &["consume", "--as", GATE],
        &["consume", &result, "--as", "somebody/else"],
        &["resume"],
        &["validate", &result],
    ];
    stops(&project, &blob(&project, &shown(&project, &packet.job, "/blob")), consumes);
    stops(&project, &blob(&project, &shown(&project, &result, "/blob")), consumes);
    assert_eq!(shown(&project, &packet.handoff, "/state"), "completed");
    assert_eq!(done(&project, &["consume", "--as", GATE])["outcome"]["value"], "reject");
    assert_eq!(done(&project, &["resume"])["status"], "running");
}

#[test]
fn a_reply_is_not_bound_to_a_damaged_job() {
    let project = Project::new();
    let packet = project.ask();
    let path = blob(&project, &shown(&project, &packet.job, "/blob"));
    project.write("answer.json", packet.verdict("accept"));
    stops(&project, &path, &[&["reply", "answer.json"]]);
    project.nf(&["reply", "answer.json"]).expect(0);
}
