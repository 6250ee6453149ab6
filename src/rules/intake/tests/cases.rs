//! The files of `tests/fixtures/cases/replies/`: the part of each that intake decides.

use super::*;

macro_rules! replies {
    ($($name:literal => $want:literal,)+) => {
        &[$(($name, include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases/replies/", $name, ".txt"
        )), $want),)+]
    };
}

const REPLIES: &[(&str, &[u8], &str)] = replies! {
    "bare" => "ok",
    "pretty" => "ok",
    "fenced-json" => "ok fence_extracted",
    "fenced-prose-both-sides" => "ok fence_extracted prose_stripped",
    "no-fence-prose" => "ok prose_stripped",
    "tilde-fence" => "ok fence_extracted",
    "long-fence-with-inner-fence" => "ok fence_extracted",
    "bash-fence-first" => "ok fence_extracted prose_stripped",
    "example-then-answer" => "ok fence_extracted prose_stripped",
    "same-twice" => "ok prose_stripped",
    "two-different" => "ambiguous",
    "bom" => "ok bom_removed",
    "utf16le" => "ok utf16_decoded",
    "crlf" => "ok",
    "nbsp-indent" => "ok nbsp_whitespace",
    "curly-delimiters" => "broken",
    "curly-inside-string" => "ok",
    "trailing-comma" => "broken",
    "duplicate-key" => "duplicate_key",
    "nan" => "non_finite",
    "truncated" => "truncated",
    "truncated-outer-good-inner" => "truncated",
    "placeholder" => "placeholder",
    "empty" => "empty",
    "wrong-fingerprint" => "ok",
    "wrong-nonce" => "ok",
    "missing-evidence" => "ok",
    "unknown-verdict" => "ok",
    "private-reasoning" => "ok",
    "cannot-judge" => "ok",
};

/// The file with the values of a packet in it.
fn filled(bytes: &[u8]) -> Vec<u8> {
    let fill = |text: &str| {
        text.replace("@JOB@", JOB).replace("@FINGERPRINT@", FINGERPRINT).replace("@NONCE@", NONCE)
    };
    match bytes.strip_prefix(b"\xFF\xFE") {
        None => fill(std::str::from_utf8(bytes).unwrap()).into_bytes(),
        Some(rest) => {
            let units: Vec<u16> = rest.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            let text = format!("\u{feff}{}", fill(&String::from_utf16(&units).unwrap()));
            text.encode_utf16().flat_map(u16::to_le_bytes).collect()
        }
    }
}

fn reply(name: &str) -> Vec<u8> {
    filled(REPLIES.iter().find(|(known, _, _)| *known == name).unwrap().1)
}

#[test]
fn each_reply_gives_what_is_expected() {
    for (name, bytes, want) in REPLIES {
        assert_eq!(outcome(&filled(bytes)), *want, "{name}");
    }
}

#[test]
fn the_table_here_names_every_file() {
    let expected =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases/replies/EXPECTED.tsv"));
    let mut rows = 0;
    for row in expected.lines().skip(1) {
        let mut cells = row.split('\t');
        let (file, exit) = (cells.next().unwrap(), cells.next().unwrap());
        let known = REPLIES.iter().find(|(name, _, _)| format!("{name}.txt") == file);
        let (_, _, want) = known.unwrap_or_else(|| panic!("{file} is not in the table"));
        assert!(want.starts_with("ok") || exit == "5", "{file}");
        rows += 1;
    }
    assert_eq!(rows, REPLIES.len());
}

#[test]
fn refused_replies_say_where_and_what() {
    for (name, column, near) in [
        (
            "curly-delimiters",
            "\u{201c}verdict\u{201d}:",
            "\u{201c}verdict\u{201d}:\u{201c}reject\u{201d},\"evidence\":[\"The firs",
        ),
        ("trailing-comma", ",}}", ",}}"),
        ("nan", "NaN", "NaN}}"),
    ] {
        let bytes = reply(name);
        let text = std::str::from_utf8(&bytes).unwrap();
        let fault = take(&bytes).unwrap_err();
        let at = text.find(column).unwrap();
        let want = (Some(1), Some(text[..at].chars().count() + 1), Some(at));
        assert_eq!((fault.line, fault.column, fault.offset), want, "{name}");
        assert_eq!(fault.found, [near], "{name}");
    }
    let curly = take(&reply("curly-delimiters")).unwrap_err();
    assert!(curly.message.contains("a curly quote \u{201c} (U+201C)"), "{}", curly.message);
    let twice = take(&reply("duplicate-key")).unwrap_err();
    assert_eq!(twice.pointer.as_deref(), Some("/output/verdict"));
    assert!(twice.message.contains("at /output/verdict"), "{}", twice.message);
    let cut = take(&reply("truncated")).unwrap_err();
    assert_eq!((cut.line, cut.column), (Some(11), Some(43)));
}

#[test]
fn an_ambiguous_reply_shows_both() {
    let fault = take(&reply("two-different")).unwrap_err();
    let shown: Vec<Value> = fault.found.iter().map(|text| value(text)).collect();
    assert_eq!(shown[0]["output"]["verdict"], "reject");
    assert_eq!(shown[1]["output"]["verdict"], "accept");
    assert_eq!((fault.line, fault.column), (Some(5), Some(1)));
    assert_eq!(candidates(&reply("two-different")), shown);
}

#[test]
fn the_nonce_of_every_reply_that_shows_one_is_found() {
    for (name, bytes, _) in REPLIES {
        let want: &[&str] = match *name {
            "placeholder" | "empty" => &[],
            "wrong-nonce" => &["00000000000000000000000000"],
            _ => &[NONCE],
        };
        assert_eq!(nonces(&filled(bytes)), want, "{name}");
    }
}

#[test]
fn values_keep_every_character() {
    let extracted = take(&reply("curly-inside-string")).unwrap();
    let want = "She said \u{201c}no\u{201d} \u{2014} caf\u{e9}.";
    assert_eq!(extracted.value["output"]["evidence"][0], want);
    let fenced = take(&reply("long-fence-with-inner-fence")).unwrap();
    assert_eq!(fenced.value["output"]["evidence"][0], "Quoted: ```x``` is fine inside a string.");
}

#[test]
fn prose_is_kept_as_length_and_hash_only() {
    let extracted = take(&reply("no-fence-prose")).unwrap();
    let around = b"Sure! \nHope this helps.";
    let want = Prose { bytes: around.len() as u64, hash: crate::model::hash::Hash::of(around) };
    assert_eq!(extracted.prose, Some(want));
    assert_eq!(take(&reply("fenced-json")).unwrap().prose, None);
}
