//! What holds for every reply.

use proptest::prelude::*;

use super::*;
use crate::model::hash::canonical;

/// Lines of prose that open no run and no fence and hold no marker.
fn prose() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-zA-Z0-9 .,;:!?'()<>*_\u{e9}\u{201c}\u{4e00}-]{0,30}", 0..4).prop_map(|lines| {
        lines.iter().map(|line| format!("{}\n", line.trim_start_matches([' ', '>']))).collect()
    })
}

/// A value of any content, as the output of an answer.
fn output() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1_000_000i64..1_000_000).prop_map(Value::from),
        "[ -~\u{a0}\u{e9}\u{201c}\n\t]{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// What stands around the value: nothing, or a fence of some kind.
fn fence() -> impl Strategy<Value = (String, String)> {
    let marks = prop_oneof![Just("```"), Just("~~~"), Just("`````")];
    let info = prop_oneof![Just(""), Just("json"), Just(" JSON x"), Just("text")];
    prop_oneof![
        Just((String::new(), "\n".to_owned())),
        (marks.clone(), info).prop_map(|(marks, info)| (format!("{marks}{info}\n"), format!("\n{marks}\n"))),
        marks.prop_map(|marks| (format!("{marks}\r\n"), marks.to_owned())),
    ]
}

/// Pieces that matter to some rule, to be mixed.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    "\n",
    "\r",
    " ",
    "\u{a0}",
    "\"nf\"",
    "{\"nf\":1}",
    "```\n",
    "~~~",
    "json",
    "# NF FORM h-1\n",
    "# END NF FORM h-1\n",
    "nf: 1\n",
    "> ",
    "NaN",
    "1e999",
    "\u{201c}",
    "\u{feff}",
    "\"nonce\":\"",
    NONCE,
    "&quot;",
    "//",
    "truncated",
    "[Pasted text]",
    "\\ud800",
    "\u{0}",
    "a",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = take(&bytes);
        let _ = (nonces(&bytes), candidates(&bytes));
    }

    #[test]
    fn arbitrary_mixes_never_panic_and_give_only_values_with_an_identity(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
        encoding in 0..3,
    ) {
        let text = pieces.concat();
        let bytes: Vec<u8> = match encoding {
            0 => text.into_bytes(),
            1 => format!("\u{feff}{text}").into_bytes(),
            _ => format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect(),
        };
        match take(&bytes) {
            Ok(extracted) => {
                prop_assert!(extracted.value.get("nf").is_some());
                prop_assert!(extracted.steps.is_sorted());
                prop_assert_eq!(extracted.prose.is_some(), extracted.steps.contains(&Step::ProseStripped));
                prop_assert_eq!(candidates(&bytes).len(), 1);
            }
            Err(fault) => prop_assert!(fault.offset.is_none_or(|offset| offset <= bytes.len())),
        }
        nonces(&bytes);
    }

    #[test]
    fn mutations_of_a_good_reply_never_panic(
        at in 0..good().len(), byte in any::<u8>(), length in 0..8usize, pretty_form in any::<bool>(),
    ) {
        let mut bytes = if pretty_form { pretty() } else { good() }.into_bytes();
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, [byte]);
        let strict = serde_json::from_slice::<Value>(&bytes).ok();
        if let Ok(extracted) = take(&bytes) {
            // A change outside the value leaves it whole; inside, strict JSON must agree.
            let kept = extracted.value == value(&good());
            prop_assert!(kept || strict == Some(extracted.value), "{}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn a_good_reply_is_found_in_any_prose_and_fence(
        output in output(), before in prose(), after in prose(), fence in fence(), indented in any::<bool>(),
    ) {
        let mut answer = value(&good());
        answer["output"] = output;
        let text = if indented { format!("{answer:#}") } else { answer.to_string() };
        let reply = format!("{before}{}{text}{}{after}", fence.0, fence.1);
        let extracted = take(reply.as_bytes());
        prop_assert!(extracted.is_ok(), "{:?} of {}", extracted, reply);
        let extracted = extracted.unwrap();
        prop_assert_eq!(canonical(&extracted.value), canonical(&answer));
        let white = format!("{before}{after}").trim().is_empty();
        prop_assert_eq!(extracted.prose.is_none(), white);
        prop_assert_eq!(nonces(reply.as_bytes()), [NONCE]);
    }

    #[test]
    fn wrapping_in_an_outer_value_is_never_unwrapped(
        before in prose(), after in prose(), cut in any::<bool>(), kind in 0..4usize,
    ) {
        let open = ["[", "{\"a\":", "{a:", "[1,{\"b\":"][kind];
        let close = ["]", "}", "}", "}]"][kind];
        let reply = format!("{before}{open}{}{}\n{after}", good(), if cut { "" } else { close });
        prop_assert!(take(reply.as_bytes()).is_err(), "{}", reply);
    }
}

/// The bytes of a text's structure: brackets, commas, colons and quotes that delimit strings.
fn structure(text: &str) -> Vec<usize> {
    let (mut string, mut escaped) = (false, false);
    let mut places = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => {
                string = !string;
                places.push(at);
            }
            b'{' | b'}' | b'[' | b']' | b',' | b':' if !string => places.push(at),
            _ => {}
        }
    }
    places
}

#[test]
fn a_byte_less_of_the_structure_is_refused_or_gives_the_same_value() {
    let mut tried = 0;
    for text in
        [good(), pretty(), format!("Sure.\n{}\nBye.", pretty()), format!("```json\n{}\n```\n", good())]
    {
        for at in structure(&text) {
            let mut bytes = text.clone().into_bytes();
            bytes.remove(at);
            if let Ok(extracted) = take(&bytes) {
                assert_eq!(extracted.value, value(&good()), "{}", String::from_utf8_lossy(&bytes));
            }
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn a_byte_more_of_the_structure_is_refused_or_gives_the_same_value() {
    let text = pretty();
    for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        for byte in ["{", "}", "[", "]", ",", ":", "\"", "\u{201c}", "'"] {
            let changed = format!("{}{byte}{}", &text[..at], &text[at..]);
            let strict = serde_json::from_str::<Value>(&changed).ok();
            if let Ok(extracted) = take(changed.as_bytes()) {
                assert!(
                    strict == Some(extracted.value.clone()) || extracted.value == value(&good()),
                    "{changed}"
                );
            }
        }
    }
}
