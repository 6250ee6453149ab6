//! A client of the server under test: it writes lines and reads lines, and knows nothing but JSON.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Project;

/// How long an answer may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running server.
pub struct Server {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: i64,
    /// Answers that came while another one was awaited.
    early: BTreeMap<String, Value>,
    /// Messages that answer nothing.
    pub others: Vec<Value>,
}

impl Server {
    /// Begins a server in a project and shakes hands as a client of 2025-11-25 does.
    pub fn begin(project: &Project, arguments: &[&str]) -> Self {
        let mut server = Self::bare(project.command(&[&["mcp"], arguments].concat()));
        let agreed = server.initialize("2025-11-25");
        assert_eq!(agreed["result"]["protocolVersion"], "2025-11-25", "{agreed}");
        server
    }

    /// Begins a server that nobody has spoken to.
    pub fn bare(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("nf runs");
        let stdout = child.stdout.take().expect("a pipe");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                let text = String::from_utf8(line.expect("a line")).expect("UTF-8");
                if send.send(text).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next: 1, early: BTreeMap::new(), others: Vec::new() }
    }

    /// The handshake of a revision.
    pub fn initialize(&mut self, version: &str) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// Writes bytes as they are. A server that is gone reads nothing.
    pub fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("open input");
        let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
    }

    /// Writes a message.
    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request and gives its number.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message, which must be one; `None` at the end of the output.
    pub fn message(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                Some(serde_json::from_str(&line).unwrap_or_else(|bad| panic!("{bad} on stdout: {line:?}")))
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(late) => panic!("no answer: {late}"),
        }
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: impl Into<Value>) -> Value {
        self.answered(id).expect("an answer")
    }

    /// The answer to a request; `None` where the server ends without one.
    pub fn answered(&mut self, id: impl Into<Value>) -> Option<Value> {
        let wanted = id.into().to_string();
        if let Some(answer) = self.early.remove(&wanted) {
            return Some(answer);
        }
        loop {
            let message = self.message()?;
            match message.get("id").map(Value::to_string) {
                Some(id) if id == wanted => return Some(message),
                Some(id) => drop(self.early.insert(id, message)),
                None => self.others.push(message),
            }
        }
    }

    /// Asks and waits.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool without waiting.
    pub fn ask_tool(&mut self, name: &str, arguments: &Value) -> i64 {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Calls a tool and gives its document; the text beside it must say the same.
    #[track_caller]
    pub fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let id = self.ask_tool(name, arguments);
        let answer = self.answer(id);
        document(&answer)
    }

    /// Calls a tool that must do what it is asked, and gives its data.
    #[track_caller]
    pub fn done(&mut self, name: &str, arguments: &Value) -> Value {
        let document = self.call(name, arguments);
        assert_eq!(document["ok"], true, "{name} {arguments}: {document}");
        document["data"].clone()
    }

    /// Calls a tool that must refuse, and gives its error.
    #[track_caller]
    pub fn refused(&mut self, name: &str, arguments: &Value, code: u8, kind: &str) -> Value {
        let error = self.call(name, arguments)["error"].clone();
        assert_eq!((&error["code"], &error["kind"]), (&json!(code), &json!(kind)), "{name}: {error}");
        error
    }

    /// Ends the input and gives all that was still said, and how the server ended.
    pub fn end(mut self) -> (Vec<Value>, ExitStatus) {
        self.stdin.take();
        let mut rest = std::mem::take(&mut self.others);
        while let Some(message) = self.message() {
            rest.push(message);
        }
        (rest, self.child.wait().expect("nf ends"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin.take();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The document in a tool's answer.
#[track_caller]
pub fn document(answer: &Value) -> Value {
    let result = answer.get("result").unwrap_or_else(|| panic!("no result: {answer}"));
    let document = result["structuredContent"].clone();
    let text: Value =
        serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(text, document, "the text says what the structure says");
    assert_eq!(result["isError"], !document["ok"].as_bool().expect("ok"), "{answer}");
    document
}

/// What a request of 2026-07-28 says of itself.
pub fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}
