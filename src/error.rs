//! The one error of the program: what failed, why, and what to do about it.
//!
//! A new [`Kind`] does not compile until it has an exit code and a next step. Messages are lower case
//! and name the thing and the rule. No other module decides an exit code.

use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;

/// The result of everything that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// One failure or refusal, with what a person needs to go on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of failure; decides the exit code.
    pub kind: Kind,
    /// What failed, naming the thing and the rule.
    pub message: String,
    /// Want and got, or the system's own words.
    pub cause: Option<String>,
    /// The exact next command or act, where it is better than the kind's general one.
    pub fix: Option<String>,
    /// What a program may want to read, as JSON.
    pub details: Value,
}

impl Error {
    /// An error of a kind with its message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: None, fix: None, details: Value::Null }
    }

    /// Adds want and got, or the system's own words.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Replaces the kind's general next step by an exact one.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Adds what a program may want to read.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = details;
        self
    }

    /// Adds one member to the details; an empty list adds none.
    #[must_use]
    pub fn with<T: Serialize>(mut self, name: &str, value: &T) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        if value == Value::Array(Vec::new()) {
            return self;
        }
        if self.details.is_null() {
            self.details = Value::Object(serde_json::Map::new());
        }
        if let Some(map) = self.details.as_object_mut() {
            map.insert(name.to_owned(), value);
        }
        self
    }

    /// An input or output failure on a named thing.
    pub fn io(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        let kind = match error.raw_os_error() {
            Some(code) if is_full(code) => Kind::DiskFull,
            _ => Kind::Io,
        };
        let failed = Self::new(kind, format!("{what} failed")).because(error.to_string());
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ROFS) => failed.fix(
                "the file system is mounted read-only: mount it for writing, or work in a copy of the \
                 project; what only reads goes on here",
            ),
            Some(Errno::ACCESS | Errno::PERM) => {
                failed.fix("give yourself the right to it; nf doctor --fix sets the modes of your own store")
            }
            _ => failed,
        }
    }

    /// The next step: this error's own, or its kind's.
    pub fn next_step(&self) -> &str {
        self.fix.as_deref().unwrap_or_else(|| self.kind.fix())
    }

    /// The error as `--json` prints it and a record keeps it.
    pub fn body(&self) -> Body {
        Body {
            code: self.kind.exit(),
            kind: self.kind,
            message: self.message.clone(),
            cause: self.cause.clone(),
            fix: self.next_step().to_owned(),
            details: self.details.clone(),
        }
    }
}

/// ENOSPC, EDQUOT: no room on the disk or in the quota.
fn is_full(code: i32) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    full.iter().any(|errno| errno.raw_os_error() == code)
}

/// An error as `--json` prints it.
#[derive(Debug, Clone, Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Body {
    /// The exit code.
    pub code: u8,
    /// The kind, a stable word for programs.
    pub kind: Kind,
    /// What failed.
    pub message: String,
    /// Want and got, or the system's own words.
    pub cause: Option<String>,
    /// The next step.
    pub fix: String,
    /// What a program may want to read; null where there is nothing.
    pub details: Value,
}

impl From<Body> for Error {
    fn from(body: Body) -> Self {
        Self {
            kind: body.kind,
            message: body.message,
            cause: body.cause,
            fix: Some(body.fix),
            details: body.details,
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $exit:literal $fix:literal;)+) => {
        /// Every kind of failure and refusal; its word is the snake case of its name.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize,
            schemars::JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum Kind { $($(#[$doc])* $name,)+ }

        impl Kind {
            /// Every kind, in the order of the exit codes.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)+];

            /// The exit code of the process (`nf --help` lists them).
            pub const fn exit(self) -> u8 {
                match self { $(Kind::$name => $exit,)+ }
            }

            /// The general next step.
            pub const fn fix(self) -> &'static str {
                match self { $(Kind::$name => $fix,)+ }
            }
        }
    };
}

kinds! {
    /// An input or output call failed.
    Io 1 "see the cause; nothing was recorded";
    /// No space or quota left; the log was truncated back.
    DiskFull 1 "free some space and run the command again; nothing was recorded";
    /// No object has this id.
    UnknownId 1 "nf list shows the ids of each kind";
    /// More than one object begins like this.
    AmbiguousId 1 "give more characters of the id";
    /// A file or stream is not what the command reads (syntax, schema, encoding).
    BadInput 1 "correct the input at the place named, then run the command again";
    /// An input is over its limit.
    TooLarge 1 "make the input smaller; docs/cli.md lists the limits";
    /// There is no store here.
    NoStore 1 "go to the project's folder or give -C DIR; nf init makes a store here";
    /// There is a store here already.
    StoreExists 1 "use the store that is there: nf status";
    /// The store belongs to another user or is open to others.
    ForeignStore 1 "chmod -R go-w .novelforge, or chown it; nf init --shared makes one for a group";
    /// The file system is not known to keep locks and syncs.
    UnsupportedFileSystem 1 "move the project to a local disk, or give --allow-fs if this one keeps locks";
    /// A newer nf wrote this store.
    NewerFormat 1 "update nf; this version reads what it understands and never writes";
    /// The command line is wrong.
    Usage 2 "nf --help, or nf COMMAND --help";
    /// More than one object could be meant.
    NotOnlyCandidate 2 "name one of the candidates";
    /// Nothing can be meant.
    NoCandidate 2 "nf status shows what there is";
    /// The lifecycle has no such transition.
    IllegalTransition 3 "nf session move or nf resume, as the legal ways say";
    /// The attempt is no longer the current one.
    LeaseLost 3 "nothing was applied; nf status shows the current attempt";
    /// The fingerprint has a valid result.
    AlreadyJudged 3 "consume the result that is there; edit the text to ask anew";
    /// A second valid result of a fingerprint.
    Surplus 3 "consume the first result; this one is kept and never applied";
    /// A permission that nothing here can grant.
    AuthorityDenied 3 "leave the permission false: nf grants no authority";
    /// A manager has one task mode.
    OtherTask 3 "nf start --resource R --task T for the other task";
    /// The run named is no longer the session's current one.
    NotCurrentRun 3 "another process went on with this session; nf show SESSION, then stop here";
    /// The packet or job would show the reviewer what it must not see.
    NotBlind 3 "remove the member named, or lift it with allow_evidence if the rubric asks to judge it";
    /// A key that may hold private reasoning or a conversation.
    PrivateKey 3 "remove the member named: checkpoints, results and events hold no transcripts";
    /// The session may not be resumed.
    CannotResume 3 "nf start --from SESSION begins a new one where this one stopped";
    /// The checkpoint is not the newest.
    OlderCheckpoint 3 "nf start --from CHECKPOINT goes back openly, in a new session";
    /// A value that looks like a secret.
    LooksSecret 3 "leave the secret out: say where it is kept, never what it is";
    /// Every attempt that the question may have is used.
    Exhausted 3 "look at the attempts (nf list attempt --job JOB); change the question or the text";
    /// The handoff was cancelled.
    HandoffCancelled 3 "nothing was applied; freeze and packet anew if the question still stands";
    /// The version is not the one expected.
    VersionMismatch 3 "nf show SESSION, then decide again";
    /// References that do not belong together.
    MismatchedReferences 3 "give references that belong together: nf show ID tells of each";
    /// This source cannot be consumed.
    NotConsumable 3 "nf show ID explains why";
    /// A binding may not be replaced by this command.
    NotABinding 3 "bind a file of the project that can be read again";
    /// The signature of a delivery is not that of its bytes.
    BadSignature 3 "check that --secret-env names the webhook's secret and FILE holds the body byte for byte";
    /// This cannot be done with the effect as it stands.
    EffectRefused 3 "nf effect check KEY says how the effect stands";
    /// The same operation key with another request.
    OpConflict 4 "use a new --op key for a new request";
    /// Another answer under the same identity.
    ResultConflict 4 "stop and look: nf show RESULT; the refused value is kept under its hash";
    /// Another result for the same source or question and consumer.
    ReceiptConflict 4 "stop and look: nf show RECEIPT; nothing was applied";
    /// Another meaning under the key of an event that is recorded.
    EventConflict 4 "stop and look: nf show EVENT; send what is new under a key of its own";
    /// A valid result that followed a different readable verdict.
    Contested 4 "look at both, then nf consume RESULT --as NAME --contested REASON";
    /// Another plan under the key of an effect.
    EffectConflict 4 "stop and look: nf show EFFECT; another write needs another key";
    /// A reply fails intake or binding.
    SemanticInvalid 5 "nf reply FILE --ask prints what to ask the reviewer for";
    /// No eligible route is left.
    ExecutionUnavailable 6 "nf route JOB lists every family and why it may not answer";
    /// The reviewer could not judge, or the transport failed.
    ExecutionFailed 7 "nf packet opens another attempt of the same question";
    /// Something outside has not come back yet.
    Pending 8 "nf status shows what is outstanding";
    /// A live attempt of the same question is out elsewhere.
    UnderReview 8 "wait for that attempt's answer; nf status shows it";
    /// A binding changed since the checkpoint.
    Stale 9 "restore the bytes, or nf session move SESSION stale and nf start --from SESSION";
    /// A write was started and nothing proves whether it happened.
    Uncertain 9 "look at the path; nf effect done KEY proves the write, nf effect clear KEY --reason TEXT \
        gives it up";
    /// The path of an effect holds what no record explains.
    Diverged 9 "restore the bytes at the path; nf effect check KEY says which";
    /// A file or the session kept changing while it was read.
    FactsMoved 9 "stop what is changing the files, then run the command again";
    /// The verdict is valid and not a passing one.
    NotPassing 10 "repair along the route named, then freeze the new text";
    /// Recorded bytes are not what they were.
    Damaged 11 "nf doctor";
    /// A failed sync or a broken lock stopped all writes.
    Poisoned 11 "nf doctor --fix";
    /// The lock does not exclude others here.
    LockNotExclusive 11 "nf doctor; move the project to a disk that keeps locks";
    /// A sync failed.
    NotDurable 12 "it may or may not be recorded: nf doctor --fix, then the same command with the same --op";
    /// The store lock was not had in time.
    Busy 75 "run the command again, or give a longer --lock-timeout";
}

impl Kind {
    /// The stable word for programs, as in `--json`.
    pub fn word(self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::String(word)) => word,
            _ => String::new(),
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_word_a_documented_code_and_a_next_step() {
        let codes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 75];
        for kind in Kind::ALL {
            assert!(codes.contains(&kind.exit()), "{kind} exits {}", kind.exit());
            assert!(!kind.word().is_empty() && !kind.fix().is_empty());
        }
    }

    #[test]
    fn a_body_becomes_the_same_error_again() {
        let error = Error::new(Kind::Surplus, "a second result").because("x").details(Value::Bool(true));
        let again = Error::from(error.body());
        assert_eq!(again.body().kind, error.kind);
        assert_eq!(again.next_step(), error.next_step());
    }

    #[test]
    fn a_full_disk_is_told_from_other_failures() {
        let full = std::io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error());
        assert_eq!(Error::io("append", &full).kind, Kind::DiskFull);
        let other = std::io::Error::from_raw_os_error(Errno::IO.raw_os_error());
        assert_eq!(Error::io("append", &other).kind, Kind::Io);
    }
}
