//! What looks like a secret: values that must not be kept, told by their form. A rule of thumb: it refuses
//! some harmless texts, and a secret made of words passes it.

/// Beginnings that a service gives its keys, with the characters that must follow at least.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_", 16),
    ("rk_live_", 8),
    ("pk_live_", 8),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxa-", 8),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 16),
    ("hf_", 16),
    ("npm_", 16),
    ("pypi-", 16),
    ("eyJ", 20),
    ("AGE-SECRET-KEY-", 8),
];

/// Words that say what stands after them.
const LABELS: &[&str] =
    &["password", "passwd", "secret", "token", "api_key", "api-key", "apikey", "access_key", "private_key"];

/// Letters and digits from which on a token may look random.
const LONG: usize = 24;

/// Why a text looks like a secret, if it does. The reason never repeats the text.
pub fn looks_secret(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN") {
        return Some("it has the header of a key file");
    }
    if text.split_whitespace().any(has_credentials) {
        return Some("it has a user and a password in an address");
    }
    if names_a_value(&text.to_lowercase()) {
        return Some("it gives the value of a password, token or key");
    }
    let tokens = || text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.+/=".contains(c)));
    if tokens().any(has_prefix) {
        return Some("it begins as a service's keys do");
    }
    tokens().any(is_random).then_some("it has a long random token")
}

fn has_prefix(token: &str) -> bool {
    // What a token is called may stand before it, with an equals sign or a slash between.
    token.split(['=', '/']).any(|part| {
        PREFIXES
            .iter()
            .any(|(start, least)| part.strip_prefix(start).is_some_and(|rest| rest.len() >= *least))
    })
}

fn has_credentials(word: &str) -> bool {
    let host = word.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let user = host.and_then(|host| host.rsplit_once('@')).map(|(user, _)| user);
    user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty())
}

fn names_a_value(text: &str) -> bool {
    let bearer = text.split_once("bearer ").is_some_and(|(_, rest)| first_word(rest).len() >= 12);
    let labelled = |label: &&str| {
        text.match_indices(*label).any(|(at, _)| {
            let rest = text[at + label.len()..].trim_start_matches(['"', '\'', ' ']);
            rest.strip_prefix([':', '='])
                .is_some_and(|value| first_word(value.trim_start_matches(['"', '\'', ' '])).len() >= 6)
        })
    };
    bearer || LABELS.iter().any(labelled)
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// A token whose letters and digits change their kind again and again, as no word does.
fn is_random(token: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => Some(0),
        b'a'..=b'z' => Some(1),
        b'A'..=b'Z' => Some(2),
        _ => None,
    };
    let kinds: Vec<u8> = token.bytes().filter_map(kind).collect();
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    // Names of models have capitals inside, so that a token with capitals must change oftener.
    let often = if kinds.contains(&2) { 4 } else { 3 };
    kinds.len() >= LONG && changes * 10 >= kinds.len() * often
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joined here, so that no scanner of repositories takes the test for a leak.
    fn made(start: &str, rest: &str) -> String {
        format!("{start}{rest}")
    }

    #[test]
    fn what_looks_like_a_secret_is_told_by_its_form() {
        let word = "abcdefghijklmnopqrst";
        let mut secrets: Vec<String> =
            PREFIXES.iter().map(|(start, _)| made(start, &word.repeat(2))).collect();
        secrets.extend(PREFIXES.iter().map(|(start, _)| format!("key {}", made(start, &word.repeat(2)))));
        secrets.extend([
            made("-----BEGIN ", "PRIVATE KEY-----"),
            made("https://user:", "word@host/path"),
            made("Authorization: Bearer ", word),
            made("api_key=", "letmein"),
            made("Password: ", "\"hunter22\""),
            made("API-KEY : ", "letmein"),
            made("a token = ", "letmein"),
            made("9f86d081884c7d65", "9a2feaa0c55ad015"),
            made("pQ7rT2vX9zLm4Kd8", "Wn3Bs6Hj"),
            made("x/pQ7rT2vX9zLm_4Kd8", "Wn3Bs6-Hj=="),
            made("HOST=", &made("ghp_", word)),
        ]);
        for secret in secrets {
            let why = looks_secret(&secret).unwrap_or_else(|| panic!("{secret}"));
            assert!(!why.contains(word), "the reason repeats the secret");
        }
    }

    #[test]
    fn what_people_write_passes() {
        for text in [
            "",
            "codex",
            "codex-cli 0.98.0",
            "claude-sonnet-4-5-20250929",
            "git version 2.47.3 (Debian 1:2.47.3-1)",
            "the token limit is 200000",
            "tokens: 5 a page",
            "keeps no secrets; asks for a password",
            "https://example.org/path?x=1",
            "mailto:someone@example.org",
            "key in OPENAI_API_KEY",
            "/usr/local/lib/node_modules/some-agent-of-the-house/bin/agent.js",
            "Qwen3-Coder-30B-A3B-Instruct",
            "sk-learn",
            "a_very_long_name_of_a_capability_that_reads_as_words_do",
        ] {
            assert_eq!(looks_secret(text), None, "{text}");
        }
    }
}
