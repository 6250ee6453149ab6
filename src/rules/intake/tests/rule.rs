//! Which runs are prose, which are candidates, and what is never promoted.

use super::*;

#[test]
fn prose_with_brackets_swallows_no_answer() {
    let good = good();
    for before in [
        "See [1] and {draft}.",
        "A set {x | x in [0, 1)} of",
        "see [1 for more",
        "An interval [0, 1) of numbers",
        "a lone [ stands here",
        "a lone { stands here",
        "It begins with \"{\" as usual.",
        "Both \"{\" and \"}\" are braces.",
        "A 5\" board [about 5\" wide",
        "[don't say \"hello",
        "{see below",
        "[see below, {and here",
        "[[wiki|link",
        "I chose {\"verdict\": \"accept\"} first.",
        "[{\"verdict\": \"accept\"}, 1]",
        "{'verdict': 'accept'}",
        "sad :[ face",
        "see [\u{2003}below",
    ] {
        let text = format!("{before}\n{good}\n");
        assert_eq!(outcome(text.as_bytes()), "ok prose_stripped", "{text}");
        assert_eq!(take(text.as_bytes()).unwrap().value, value(&good), "{text}");
    }
    for after in
        ["see [1", "{", "[", "{\"draft\":", "{x: 1", ":-)", ":-}", "`}`", "[1]: a footnote", ".", ","]
    {
        let text = format!("{good}\n{after}");
        assert_eq!(outcome(text.as_bytes()), "ok prose_stripped", "{text}");
    }
}

#[test]
fn nothing_inside_an_outer_value_is_promoted() {
    let (good, pretty) = (good(), pretty());
    for (text, want) in [
        (format!("[{good}]"), "no_answer"),
        (format!("{{\"draft\": {good}}}"), "no_answer"),
        (format!("[[{pretty}], 1]"), "no_answer"),
        (format!("{{\"draft\": {good}"), "truncated"),
        (format!("[{good}"), "truncated"),
        (format!("[\n{good}\n"), "truncated"),
        (format!("[1, 2,\n{good}\n"), "truncated"),
        (format!("{{\"a\": {{\"b\": [\n{pretty}\n"), "truncated"),
        (format!("{{draft: {good}}}"), "broken"),
        (format!("{{draft: {good}"), "broken"),
        (format!("{{draft:\n{good}"), "broken"),
        (format!("{{'draft':\n{good}"), "broken"),
        (format!("{{\u{201c}draft\u{201d}:\n{good}"), "broken"),
        (format!("{{\"draft\": oops\n{good}"), "broken"),
        (format!("{{\"draft\": 1,, \"b\":\n{good}"), "broken"),
        (format!("{{ // the draft\n{good}"), "broken"),
        (format!("[\"a\", oops,\n{good}"), "broken"),
        (format!("[\"a\"\n{good}"), "broken"),
        (format!("[{{a: 1}},\n{good}"), "broken"),
        (format!("{{{good}}}"), "broken"),
        (format!("{{{good}"), "broken"),
        (format!("{{\n{good}\n"), "broken"),
        (format!("{{ in code\n{good}\n}}"), "broken"),
        (format!("{good}}}"), "broken"),
        (format!("{good}\n]"), "broken"),
        (format!("{good},\n\"more\": 1"), "broken"),
        (good.replacen("},", "}}", 1), "broken"),
        (good.replacen("},\"", "}}", 1), "broken"),
        (good.replacen("},", "}}\n", 1), "broken"),
        (format!("\"draft\": {good}"), "broken"),
        (format!("\u{ff5b}\"draft\": {good}"), "broken"),
        (format!("\u{ff5b} {good} \u{ff5d}"), "broken"),
        (format!("{{\"a\": \"x\u{201d}, \"b\": \"}}\", \"in\": {good}}}"), "broken"),
        (format!("{{\"draft\": \"one\n}}\", \"in\":\n{good}}}"), "broken"),
    ] {
        assert_eq!(outcome(text.as_bytes()), want, "{text}");
    }
}

#[test]
fn candidates_are_compared_as_values() {
    let (good, pretty, other) = (good(), pretty(), answer("accept"));
    let blank = serde_json::to_string(&blank()).unwrap();
    for (text, want) in [
        (format!("{good}\n{pretty}"), "ok prose_stripped"),
        (format!("{good}\n{}", good.replace("0.7", "7e-1")), "ok prose_stripped"),
        (format!("<think>{good}</think>\n{good}"), "ok prose_stripped"),
        (format!("<think>{other}</think>\n{good}"), "ambiguous"),
        (format!("```json\n{good}\n```\n```json\n{other}\n```"), "ambiguous"),
        (format!("{good}\n{}", &good[..good.len() - 9]), "ambiguous"),
        (format!("{}\n{good}", good.replace("0.7", "NaN")), "ambiguous"),
        (format!("> {other}\n\n{good}"), "ambiguous"),
        (format!("{{\"nf\": ...}} is the form.\n{good}"), "ambiguous"),
        (blank.clone(), "form_not_filled_in"),
        (format!("{blank}\n{blank}"), "form_not_filled_in"),
        (format!("{blank}\n{good}"), "ok prose_stripped"),
        (format!("{blank}\n{good}}}"), "broken"),
        (format!("[Pasted text #1 +40 lines]\n{good}"), "ok prose_stripped"),
        (format!("truncated\n{good}"), "ok prose_stripped"),
    ] {
        assert_eq!(outcome(text.as_bytes()), want, "{text}");
    }
}

#[test]
fn fences_are_read_by_themselves() {
    let (good, pretty) = (good(), pretty());
    for (text, want) in [
        (format!("```json\n{pretty}```  "), "ok fence_extracted"),
        (format!("```json\n{pretty}```\nHope it helps"), "ok fence_extracted prose_stripped"),
        (format!("```json\n{pretty}\n"), "ok fence_extracted"),
        (format!("~~~TXT\n{good}\n~~~~"), "ok fence_extracted"),
        (format!("   ```\r\n{good}\r\n   ```\r\n"), "ok fence_extracted"),
        (format!("    ```json\n    {good}\n    ```"), "ok prose_stripped"),
        (format!("lorem ```json {good} ``` ipsum"), "ok prose_stripped"),
        (format!("see [note\n```json\n{good}\n```"), "ok fence_extracted prose_stripped"),
        (format!("```python\n{good}\n```"), "no_answer"),
        (format!("```yaml\n{good}\n```"), "no_answer"),
        (format!("```json\n{}\n```", &good[..good.len() - 1]), "broken"),
        (format!("```json\n{}\n", &good[..good.len() - 1]), "truncated"),
        (format!("{}\n```\n{}\n```", &good[..40], &good[40..]), "broken"),
    ] {
        assert_eq!(outcome(text.as_bytes()), want, "{text}");
    }
    let skipped = take(format!("a\n```python\n{good}\n```").as_bytes()).unwrap_err();
    assert_eq!((skipped.line, skipped.message.contains("```python")), (Some(2), true), "{skipped:?}");
}

#[test]
fn white_space_and_encodings_are_recorded_by_name() {
    let good = good();
    let spaced = pretty().replace("  ", "\u{a0}\u{a0}");
    let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xFEFF).chain(text.encode_utf16()).flat_map(unit).collect()
    };
    for (bytes, want) in [
        (format!("\n\t {good}\r\n").into_bytes(), "ok"),
        (
            format!("\u{feff}Sure:\n```\n{spaced}\n```").into_bytes(),
            "ok bom_removed fence_extracted prose_stripped nbsp_whitespace",
        ),
        (format!("\u{a0}{good}\u{a0}\n").into_bytes(), "ok nbsp_whitespace"),
        (format!("Sure.\u{a0}\n{good}").into_bytes(), "ok prose_stripped"),
        (utf16(&good, u16::to_be_bytes), "ok utf16_decoded"),
        (utf16(&format!("ok {good}"), u16::to_le_bytes), "ok utf16_decoded prose_stripped"),
        (utf16(&good, u16::to_be_bytes)[2..].to_vec(), "encoding"),
        (utf16(&good, u16::to_le_bytes)[..99].to_vec(), "encoding"),
        ([good.as_bytes(), b"\xe9"].concat(), "encoding"),
    ] {
        assert_eq!(outcome(&bytes), want);
    }
    let inside = good.replace("Nine people.", "Nine\u{a0}people\u{2003}.");
    let kept = take(inside.as_bytes()).unwrap();
    assert_eq!((kept.steps.len(), kept.value), (0, value(&inside)));
}

#[test]
fn every_reason_and_step_is_its_word_in_json() {
    for reason in Reason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
        let ask = format!("{}{}", reason.ask(), reason.ask_form()).to_lowercase();
        assert!(!ask.contains("verdict") && !ask.contains("accept") && !ask.contains("reject"), "{ask}");
    }
    for step in Step::ALL {
        assert_eq!(serde_json::to_value(step).unwrap(), step.word());
    }
}
