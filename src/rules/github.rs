//! What a delivery of GitHub says, as an event of our own: which type, about what, and by whom. Reads the few
//! members that are named here; the rest of a delivery is theirs. Grants nothing: whose comment may carry an
//! answer is for the user's settings to say (control-plane contract, 03 and 12).

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use super::event::kind;
use super::members::nearest;
use crate::error::{Error, Kind, Result};
use crate::model::external::EventType;
use crate::model::hash::Hash;

/// Bytes that the body of a delivery has at most: those that GitHub sends.
pub const MAX_BODY: u64 = 25 * 1024 * 1024;
/// Bytes of a comment's text that an observation keeps.
const MAX_TEXT: usize = 32 * 1024;
/// Bytes of each short text that is kept.
const MAX_SHORT: usize = 1024;

/// The deliveries that are read.
const NAMES: &[&str] = &["repository_dispatch", "issue_comment", "workflow_run"];
/// References that a dispatch may name.
const REFERENCES: [&str; 4] = ["resource", "session", "run", "handoff"];

/// Checks the signature of a body: `sha256=` and the HMAC in hex, compared in constant time.
///
/// # Errors
/// `bad_signature`; what was wanted is never told.
pub fn verify(secret: &[u8], body: &[u8], signature: &str) -> Result<()> {
    let wrong = |why: &str| Error::new(Kind::BadSignature, "the body is not what was signed").because(why);
    let Some(digits) = signature.trim().strip_prefix("sha256=") else {
        return Err(wrong("the signature does not begin with sha256=; it is the header X-Hub-Signature-256"));
    };
    let tag = unhex(digits).ok_or_else(|| wrong("the signature is not 64 hex digits"))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(|_| wrong("the secret cannot be used"))?;
    mac.update(body);
    mac.verify_slice(&tag).map_err(|_| wrong("another secret, or other bytes"))
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()).collect()
}

/// What a delivery says.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The type of the event that it becomes.
    pub kind: EventType,
    /// What it names: a resource and ids, as texts.
    pub references: Map<String, Value>,
    /// What the event carries.
    pub payload: Map<String, Value>,
    /// Who caused it.
    pub actor: Option<String>,
    /// Where it can be looked up.
    pub reference: Option<String>,
    /// The comment, where it is one that was written now.
    pub comment: Option<Comment>,
}

/// A comment that may carry an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    /// Its text.
    pub text: String,
    /// Who wrote it and who sent it: a maintainer may edit what somebody else wrote.
    pub speakers: Vec<String>,
}

impl Told {
    /// The same as the report of an answer: nothing of the comment is kept, since it holds a nonce.
    pub fn reporting(mut self, kind: EventType) -> Self {
        self.kind = kind;
        self
    }

    /// Keeps the comment's text, as far as there is room: for those in which no nonce stands.
    #[must_use]
    pub fn with_text(mut self) -> Self {
        let text = self.comment.as_ref().map(|comment| &comment.text).filter(|text| text.len() <= MAX_TEXT);
        if let Some(text) = text {
            self.payload.insert("text".to_owned(), text.as_str().into());
        }
        self
    }
}

/// Reads a delivery; a reason where it is of a kind that says nothing here.
///
/// # Errors
/// `usage` for a name that is not read or a type that there is not; `bad_input` with the pointer.
pub fn read(name: &str, body: &Value, whole: &Hash) -> Result<std::result::Result<Told, String>> {
    if !body.is_object() {
        return Err(Error::new(Kind::BadInput, "a delivery is one JSON object"));
    }
    let action = short(body, "/action").unwrap_or_default();
    let done = |action: &str, wanted: &str| format!("{name} {action}: only {wanted} is recorded");
    let told = match name {
        "repository_dispatch" => dispatch(body)?,
        "issue_comment" if !["created", "edited"].contains(&action.as_str()) => {
            return Ok(Err(done(&action, "created or edited")));
        }
        "issue_comment" => comment(body)?,
        "workflow_run" if action != "completed" => return Ok(Err(done(&action, "completed"))),
        "workflow_run" => workflow(body)?,
        _ => return Err(unknown(name)),
    };
    let mut told = told;
    // The hash stands for every byte: another body under the same delivery is another meaning.
    told.payload.insert("delivered".to_owned(), json!(whole));
    told.payload.insert("name".to_owned(), name.into());
    for (member, pointer) in [("action", "/action"), ("repository", "/repository/full_name")] {
        told.payload.extend(short(body, pointer).map(|text| (member.to_owned(), text.into())));
    }
    Ok(Ok(told))
}

fn unknown(name: &str) -> Error {
    let shown: String = name.chars().take(40).collect();
    let error = Error::new(Kind::Usage, format!("deliveries named {shown:?} are not read"))
        .fix(format!("--name takes the header X-GitHub-Event: {}", NAMES.join(", ")));
    match nearest(name, NAMES.iter().copied()) {
        Some(near) => error.because(format!("did you mean {near}?")),
        None => error.because(format!("known are {}", NAMES.join(", "))),
    }
}

/// A short text at a pointer; one that is longer is left out.
fn short(body: &Value, pointer: &str) -> Option<String> {
    let text = body.pointer(pointer)?.as_str()?;
    (!text.is_empty() && text.len() <= MAX_SHORT).then(|| text.to_owned())
}

fn need(body: &Value, pointer: &str) -> Result<String> {
    let text = body.pointer(pointer).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| {
        Error::new(Kind::BadInput, format!("the delivery has no text at {pointer}"))
            .details(json!({"pointer": pointer}))
    })
}

fn told(kind: EventType, body: &Value, reference: &str) -> Told {
    Told {
        kind,
        references: Map::new(),
        payload: Map::new(),
        actor: short(body, "/sender/login"),
        reference: short(body, reference),
        comment: None,
    }
}

/// The sender's own words: `client_payload.nf` names the type, and members named like references are those.
fn dispatch(body: &Value) -> Result<Told> {
    let word = need(body, "/client_payload/nf")
        .map_err(|error| error.fix("send the type of event in client_payload.nf, such as \"ci.observed\""))?;
    let mut told = told(kind(&word)?, body, "/repository/html_url");
    let mut given = body.pointer("/client_payload").and_then(Value::as_object).cloned().unwrap_or_default();
    given.remove("nf");
    for name in REFERENCES {
        match given.remove(name) {
            Some(Value::String(text)) => drop(told.references.insert(name.to_owned(), text.into())),
            Some(_) => {
                let pointer = format!("/client_payload/{name}");
                return Err(Error::new(Kind::BadInput, format!("a name or an id is wanted at {pointer}"))
                    .details(json!({"pointer": pointer})));
            }
            None => {}
        }
    }
    if !given.is_empty() {
        told.payload.insert("client_payload".to_owned(), given.into());
    }
    Ok(told)
}

fn comment(body: &Value) -> Result<Told> {
    let text = need(body, "/comment/body")?;
    let speakers = vec![need(body, "/comment/user/login")?, need(body, "/sender/login")?];
    let mut told = told(kind("feedback.observed")?, body, "/comment/html_url");
    let issue = body.pointer("/issue/number").filter(|number| number.is_u64());
    told.payload.extend(issue.map(|number| ("issue".to_owned(), number.clone())));
    told.payload.insert("author".to_owned(), speakers[0].as_str().into());
    told.comment = Some(Comment { text, speakers });
    Ok(told)
}

fn workflow(body: &Value) -> Result<Told> {
    need(body, "/workflow_run/conclusion")?;
    let mut told = told(kind("ci.observed")?, body, "/workflow_run/html_url");
    for member in ["name", "event", "status", "conclusion", "head_branch", "head_sha"] {
        let text = short(body, &format!("/workflow_run/{member}"));
        let member = if member == "name" { "workflow" } else { member };
        told.payload.extend(text.map(|text| (member.to_owned(), text.into())));
    }
    for member in ["id", "run_number", "run_attempt"] {
        let number = body.pointer(&format!("/workflow_run/{member}")).filter(|number| number.is_u64());
        told.payload.extend(number.map(|number| (member.to_owned(), number.clone())));
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_bytes_and_its_secret_only() {
        // The example of GitHub's own page on webhooks.
        let (secret, body) = (b"It's a Secret to Everybody", b"Hello, World!");
        let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(verify(secret, body, good), Ok(()));
        assert_eq!(verify(secret, body, &format!(" sha256={}\n", good[7..].to_uppercase())), Ok(()));
        for signature in
            ["", "sha256=", &good[7..], &good[..70], &format!("{good}0"), "sha1=757107ea0eb2509f"]
        {
            assert_eq!(verify(secret, body, signature).unwrap_err().kind, Kind::BadSignature, "{signature}");
        }
        let flipped = good.replace("17", "18");
        for (secret, body, signature) in [
            (&b"another"[..], &body[..], good),
            (secret, b"Hello, World?", good),
            (secret, b"", good),
            (secret, body, &flipped),
            (b"", body, good),
        ] {
            assert_eq!(verify(secret, body, signature).unwrap_err().kind, Kind::BadSignature);
        }
    }

    fn read_one(name: &str, body: &Value) -> Result<std::result::Result<Told, String>> {
        read(name, body, &Hash::of(b"whole"))
    }

    #[test]
    fn each_delivery_becomes_the_event_that_it_is() {
        let sender = json!({"login": "jane"});
        let dispatch = json!({"action": "go", "sender": sender, "repository": {"full_name": "a/b"},
            "client_payload": {"nf": "ci.observed", "resource": "novel/pride", "run": "r-1234",
                "green": true}});
        let told = read_one("repository_dispatch", &dispatch).unwrap().unwrap();
        assert_eq!((told.kind.as_str(), told.actor.as_deref()), ("ci.observed", Some("jane")));
        assert_eq!(Value::from(told.references), json!({"resource": "novel/pride", "run": "r-1234"}));
        assert_eq!(told.payload["client_payload"], json!({"green": true}));
        assert_eq!(told.payload["repository"], "a/b");
        let run = json!({"action": "completed", "workflow_run": {"id": 7, "name": "build",
            "conclusion": "failure", "head_sha": "abc", "html_url": "https://example.org/7", "logs": "l"}});
        let told = read_one("workflow_run", &run).unwrap().unwrap();
        assert_eq!(
            (told.kind.as_str(), told.reference.as_deref()),
            ("ci.observed", Some("https://example.org/7"))
        );
        assert_eq!(told.payload["conclusion"], "failure");
        assert!(!told.payload.contains_key("logs"));
        let said = json!({"action": "created", "sender": sender, "issue": {"number": 3},
            "comment": {"body": "I read on.", "user": {"login": "joe"}}});
        let told = read_one("issue_comment", &said).unwrap().unwrap();
        assert_eq!((told.kind.as_str(), &told.payload["author"]), ("feedback.observed", &json!("joe")));
        assert_eq!(told.comment.as_ref().unwrap().speakers, ["joe", "jane"]);
        assert!(!told.payload.contains_key("text"));
        assert_eq!(told.with_text().payload["text"], "I read on.");
    }

    #[test]
    fn what_says_nothing_here_is_told_and_what_is_none_is_refused() {
        for (name, body) in [
            ("workflow_run", json!({"action": "requested"})),
            ("issue_comment", json!({"action": "deleted"})),
        ] {
            assert!(read_one(name, &body).unwrap().unwrap_err().contains("only"), "{name}");
        }
        for (name, body, kind, word) in [
            ("ping", json!({}), Kind::Usage, "not read"),
            ("isue_comment", json!({}), Kind::Usage, "not read"),
            ("workflow_run", json!([]), Kind::BadInput, "object"),
            ("workflow_run", json!({"action": "completed"}), Kind::BadInput, "/workflow_run/conclusion"),
            ("issue_comment", json!({"action": "created", "comment": {}}), Kind::BadInput, "/comment/body"),
            ("repository_dispatch", json!({}), Kind::BadInput, "/client_payload/nf"),
            ("repository_dispatch", json!({"client_payload": {"nf": "ci.seen"}}), Kind::Usage, "ci.seen"),
            (
                "repository_dispatch",
                json!({"client_payload": {"nf": "x.canon_write"}}),
                Kind::AuthorityDenied,
                "canon_write",
            ),
            (
                "repository_dispatch",
                json!({"client_payload": {"nf": "ci.observed", "run": 7}}),
                Kind::BadInput,
                "/client_payload/run",
            ),
        ] {
            let error = read_one(name, &body).expect_err(name);
            assert_eq!(error.kind, kind, "{name} {body}: {error:?}");
            assert!(format!("{error:?}").contains(word), "{error:?}");
        }
        assert_eq!(unknown("isue_comment").cause.as_deref(), Some("did you mean issue_comment?"));
    }
}
