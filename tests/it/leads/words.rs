//! The commands in a text that leads on: `nf …, then nf …` is one sequence, everything else an alternative.

/// Flags that take no value.
const BARE: &[&str] =
    &["--revoke", "--follow", "--interrupted", "--wait", "--exit-verdict", "--ask", "--fix"];
/// Commands of two words.
const NOUNS: &[&str] =
    &["handoff", "session", "run", "checkpoint", "effect", "event", "capability", "contract"];
/// Commands that want what only somebody outside has: an answer, a file that was carried, a nonce.
const OUTSIDE: &[&str] =
    &["reply", "import", "handoff complete", "handoff renew", "handoff fail", "export RESULT", "log"];

/// What stands for a placeholder; none where only the reader knows.
fn given(word: &str) -> Option<&str> {
    let is_placeholder = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'|');
    match word {
        "FILE" => Some("new.yaml"),
        "HASH|FILE" => Some("new.yaml"),
        "NAME" => Some("w"),
        "CLASS" => Some("semantic_reviewer"),
        "REASON" | "TEXT" => Some("because"),
        "CMD" => Some("true"),
        "R" | "T" => Some("other"),
        _ if is_placeholder => None,
        word => Some(word),
    }
}

/// How many words that are neither ids nor flags a command takes.
fn plain(command: &str) -> usize {
    match command {
        "session move" | "effect run" | "effect check" | "effect done" | "effect clear" | "list" => 1,
        _ => 0,
    }
}

fn is_id(word: &str) -> bool {
    word.len() == 14 && word.as_bytes()[1] == b'-'
}

/// One command at the start of some words, and whether a reader can run it as it stands.
fn command(words: &[&str]) -> Option<Vec<String>> {
    const ENDS: [char; 4] = [',', ';', ')', ':'];
    let count = if words.first().is_some_and(|first| NOUNS.contains(first)) { 2 } else { 1 };
    let (head, rest) = words.split_at(count.min(words.len()));
    let mut line: Vec<String> = head.iter().map(|word| word.trim_end_matches(ENDS).to_owned()).collect();
    let name = line.join(" ");
    let mut ended = head.iter().any(|word| word.ends_with(ENDS));
    let (mut left, mut value) = (plain(&name), false);
    for word in rest {
        let raw = word.trim_end_matches(ENDS);
        let is_flag = raw.starts_with("--");
        let is_plain = !value && !is_flag && !is_id(raw) && given(raw) == Some(raw) && raw != "...";
        if ended || (is_plain && left == 0) {
            break;
        }
        left -= usize::from(is_plain);
        value = is_flag && raw != "--" && !BARE.contains(&raw);
        ended = word.ends_with(ENDS);
        line.push(given(raw)?.to_owned());
    }
    let carried = line.windows(2).any(|two| two[0] == "--from" && !is_id(&two[1]));
    let outside = carried || OUTSIDE.iter().any(|other| name == *other);
    (!outside && !line.iter().any(|word| word == "...")).then_some(line)
}

/// The sequences of commands in a text.
pub fn commands(text: &str) -> Vec<Vec<Vec<String>>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut all: Vec<Vec<Vec<String>>> = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| **word == "nf") {
        let follows = at > 0 && words[at - 1] == "then" && words[..at - 1].contains(&"nf");
        match (command(&words[at + 1..]), all.last_mut().filter(|_| follows)) {
            (Some(line), Some(last)) => last.push(line),
            (Some(line), None) if !follows => all.push(vec![line]),
            // What comes after something that only the reader can do cannot be tried.
            (_, _) if follows => {}
            (None, _) => all.push(Vec::new()),
            (Some(_), None) => {}
        }
    }
    all.retain(|sequence| !sequence.is_empty());
    all
}

#[test]
fn commands_are_read_out_of_what_is_said() {
    let told = |text: &str| -> Vec<String> {
        let sequences = commands(text).into_iter();
        sequences.map(|all| all.iter().map(|line| line.join(" ")).collect::<Vec<_>>().join(" && ")).collect()
    };
    for (text, wanted) in [
        ("nf packet j-000000000000", vec!["packet j-000000000000"]),
        (
            "nf show h-000000000000 tells why; nf handoff open j-000000000000 --class a --max-attempts 4",
            vec!["show h-000000000000", "handoff open j-000000000000 --class a --max-attempts 4"],
        ),
        (
            "nf session move s-000000000000 stale, then nf start --from s-000000000000",
            vec!["session move s-000000000000 stale && start --from s-000000000000"],
        ),
        (
            "nf freeze FILE, then nf packet; or nf run finish --status completed",
            vec!["freeze new.yaml && packet", "run finish --status completed"],
        ),
        (
            "nf reply with the answer; nf packet h-000000000000 --for human shows it",
            vec!["packet h-000000000000 --for human"],
        ),
        ("nf effect clear settle --reason TEXT and plan anew", vec!["effect clear settle --reason because"]),
        ("nf effect run settle -- CMD", vec!["effect run settle -- true"]),
        ("nf handoff open ... --class a asks anew", vec![]),
        ("repair along repair.story, then nf freeze FILE", vec!["freeze new.yaml"]),
        ("give --session s-000000000000", vec![]),
    ] {
        assert_eq!(told(text), wanted, "{text}");
    }
}
