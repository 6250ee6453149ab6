//! From the bytes of a line to a message of the protocol, or the error that answers it. What passes is
//! typed and has one meaning; nothing is executed that is no request with an id. Reads no stream.

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
};
use serde_json::Value;

use crate::model::json;

/// What a line, or an item of a batch, came to.
#[derive(Debug)]
pub enum Incoming {
    /// A request to answer.
    Request(RequestId, Box<ClientJsonRpcMessage>),
    /// A notification that matters.
    Notification(Box<ClientJsonRpcMessage>),
    /// A request that is given up by its sender.
    Cancelled(RequestId, Box<ClientJsonRpcMessage>),
    /// What cannot be served.
    Refused(Option<RequestId>, ErrorData),
    /// Nothing to do.
    Nothing,
}

/// A line taken apart.
#[derive(Debug)]
pub enum Parsed {
    /// One message.
    One(Incoming),
    /// A batch.
    Many(Vec<Incoming>),
}

/// What is known of the other side.
#[derive(Debug, Default)]
pub struct Era {
    /// Whether `initialize` has come: later requests need not name a version.
    initialized: bool,
    /// Whether its revision has batches.
    batches: bool,
}

/// The one revision that has batches.
const WITH_BATCHES: &str = "2025-03-26";
/// Where a request of 2026-07-28 says its version.
const VERSION: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
/// What may be asked before anything is agreed on.
const FIRST: &[&str] = &["initialize", "ping", "server/discover"];
/// Requests whose parameters are looked at: whatever does not fit is wrong parameters, not an unknown method.
const KNOWN: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

impl Era {
    /// Takes a line apart.
    pub fn parse(&mut self, line: &[u8]) -> Parsed {
        let value = match json::parse(line) {
            Ok(value) => value,
            Err(fault) => {
                let message = format!("Parse error: {fault}");
                return Parsed::One(Incoming::Refused(None, ErrorData::parse_error(message, None)));
            }
        };
        match value {
            Value::Array(items) if self.batches && !items.is_empty() => {
                Parsed::Many(items.into_iter().map(|item| self.message(item)).collect())
            }
            Value::Array(_) => Parsed::One(refused(
                None,
                format!("only revision {WITH_BATCHES} has batches, and no empty ones"),
            )),
            other => Parsed::One(self.message(other)),
        }
    }

    fn message(&mut self, value: Value) -> Incoming {
        let Value::Object(map) = &value else { return refused(None, "a message is an object") };
        let id = match map.get("id") {
            None => None,
            Some(Value::String(text)) => Some(RequestId::String(text.as_str().into())),
            Some(Value::Number(number)) if number.is_i64() => number.as_i64().map(RequestId::Number),
            Some(_) => return refused(None, "an id is a text or a whole number"),
        };
        if map.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return refused(id, "a message has \"jsonrpc\": \"2.0\"");
        }
        let Some(method) = map.get("method") else {
            // The server asks nothing, so that no answer can be meant for it.
            let is_answer = map.contains_key("result") || map.contains_key("error");
            return if is_answer { Incoming::Nothing } else { refused(id, "a request has a method") };
        };
        let Some(method) = method.as_str().map(str::to_owned) else {
            return refused(id, "a method is a text");
        };
        if map.get("params").is_some_and(|params| !params.is_object()) {
            return match id {
                Some(id) => invalid(id, "params are an object"),
                None => Incoming::Nothing,
            };
        }
        match id {
            Some(id) => self.request(id, &method, value),
            None => notification(value),
        }
    }

    fn request(&mut self, id: RequestId, method: &str, value: Value) -> Incoming {
        if value.get("result").is_some() || value.get("error").is_some() {
            return refused(Some(id), "a request has no result and no error");
        }
        let versioned = value.pointer(VERSION).is_some();
        if !self.initialized && !versioned && !FIRST.contains(&method) {
            return invalid(
                id,
                "no revision is agreed on: initialize first, or name the protocol version in _meta",
            );
        }
        let message: ClientJsonRpcMessage = match serde_json::from_value(value) {
            Ok(message) => message,
            Err(error) => return invalid(id, error),
        };
        match &message {
            JsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::CustomRequest(_) if KNOWN.contains(&method) => {
                    return invalid(id, format!("the parameters are not those of {method}"));
                }
                ClientRequest::InitializeRequest(request) => {
                    self.initialized = true;
                    self.batches = request.params.protocol_version.as_str() == WITH_BATCHES;
                }
                _ => {}
            },
            _ => return refused(Some(id), "it is no request"),
        }
        Incoming::Request(id, Box::new(message))
    }
}

/// Only what the protocol itself needs: all else, a call without an id too, is never executed.
fn notification(value: Value) -> Incoming {
    let message: Result<ClientJsonRpcMessage, _> = serde_json::from_value(value);
    let Ok(message) = message else { return Incoming::Nothing };
    let cancelled = match &message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.clone(),
            ClientNotification::InitializedNotification(_) => None,
            _ => return Incoming::Nothing,
        },
        _ => return Incoming::Nothing,
    };
    match cancelled {
        Some(id) => Incoming::Cancelled(id, Box::new(message)),
        None => Incoming::Notification(Box::new(message)),
    }
}

fn refused(id: Option<RequestId>, why: impl std::fmt::Display) -> Incoming {
    let message = format!("Invalid request: {why}");
    Incoming::Refused(id, ErrorData::new(ErrorCode::INVALID_REQUEST, message, None))
}

fn invalid(id: RequestId, why: impl std::fmt::Display) -> Incoming {
    let message = format!("Invalid params: {why}");
    Incoming::Refused(Some(id), ErrorData::new(ErrorCode::INVALID_PARAMS, message, None))
}
