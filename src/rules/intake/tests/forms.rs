//! Human forms inside whole replies.

use super::*;

const FORM: &str = "\
# NF FORM h-0123456789ab
nf:
  job: j-0123456789ab
  fingerprint: nf1:1111111111111111111111111111111111111111111111111111111111111111
  nonce: 0123456789abcdefghjkmnpqrs
worker: # who answers
  provider: p
  model: m
status: completed
output:
  # accept or reject
  verdict: reject
  evidence:
    - Nine people.
  confidence: 0.7
# END NF FORM h-0123456789ab
";

#[test]
fn a_form_is_found_wherever_it_stands() {
    for (text, want) in [
        (FORM.to_owned(), "ok yaml_form_parsed"),
        (FORM.replace('\n', "\r\n"), "ok yaml_form_parsed"),
        (format!("\u{feff}{FORM}"), "ok bom_removed yaml_form_parsed"),
        (format!("Here it is.\n\n{FORM}\nBest wishes [1]"), "ok prose_stripped yaml_form_parsed"),
        (format!("```yaml\n{FORM}```\n"), "ok fence_extracted yaml_form_parsed"),
        (format!("```\n{FORM}```\nbye"), "ok fence_extracted prose_stripped yaml_form_parsed"),
        (FORM.lines().map(|line| format!("   {line}\n")).collect(), "ok yaml_form_parsed"),
        (FORM.replace("  ", "\u{a0} "), "ok nbsp_whitespace yaml_form_parsed"),
        (format!("{FORM}\n{FORM}"), "ok prose_stripped yaml_form_parsed"),
        (format!("{FORM}\n{}", good()), "ok prose_stripped yaml_form_parsed"),
        (format!("{}\n{FORM}", good()), "ok prose_stripped"),
    ] {
        assert_eq!(outcome(text.as_bytes()), want, "{text}");
        assert_eq!(take(text.as_bytes()).unwrap().value, value(&good()), "{text}");
    }
}

#[test]
fn forms_that_are_no_one_answer_are_named() {
    let other = FORM.replace("verdict: reject", "verdict: accept");
    let (head, _) = FORM.split_once("# END").unwrap();
    for (text, want) in [
        (format!("{FORM}{other}"), "ambiguous"),
        (format!("{FORM}{}", answer("accept")), "ambiguous"),
        (format!("{head}{FORM}"), "ambiguous"),
        (head.to_owned(), "truncated"),
        (format!("{head}\n{}", good()), "truncated"),
        (FORM.replace("END NF FORM h-0", "END NF FORM h-1"), "truncated"),
        (FORM.replace("  job:", "\tjob:"), "broken"),
        (FORM.replace("nf:", "id:"), "no_answer"),
        (FORM.lines().map(|line| format!("> {line}\n")).collect(), "no_answer"),
        (format!("```bash\n{FORM}```\n"), "no_answer"),
    ] {
        assert_eq!(outcome(text.as_bytes()), want, "{text}");
    }
}

#[test]
fn a_form_with_its_blanks_is_not_filled_in() {
    let text = FORM
        .replace("provider: p", "provider: \"\"")
        .replace("model: m", "model: \"\"")
        .split_once("output:")
        .map(|(head, _)| format!("{head}output: {{}}\n# END NF FORM h-0123456789ab\n"))
        .unwrap();
    assert_eq!(outcome(text.as_bytes()), "form_not_filled_in");
    let both = format!("{text}\n{FORM}");
    assert_eq!(outcome(both.as_bytes()), "ok prose_stripped yaml_form_parsed");
}

#[test]
fn a_broken_form_has_its_line_in_the_reply() {
    let text = format!("Hello,\n\n{}", FORM.replace("  model: m", " model: m"));
    let fault = take(text.as_bytes()).unwrap_err();
    assert_eq!(fault.reason, Reason::Broken);
    assert!(fault.ask.starts_with("The form could not be read."), "{}", fault.ask);
    let line = fault.line.unwrap();
    assert!((8..=11).contains(&line), "{fault:?}");
    assert_eq!(nonces(text.as_bytes()), [NONCE]);
}
