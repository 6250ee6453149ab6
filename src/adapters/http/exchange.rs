//! A question put to an endpoint, and a look whether one is there.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use ureq::http::HeaderValue;

use super::call::{Call, Response, make};
use super::dialect::{self, ANTHROPIC_VERSION, named};
use super::{Dialect, Endpoint, Reached, status, witness};
use crate::adapters::ask::{Ask, Failure, Limits, Outcome};
use crate::adapters::leak::keep_out;
use crate::model::witness::Witness;

/// Bytes of a list of models that are read.
const MAX_LIST: u64 = 4 * 1024 * 1024;

/// Puts one packet to an endpoint, once, and gives the bytes of its answer or why there are none. The key
/// goes into one header of one request and nowhere else.
pub fn ask(endpoint: &Endpoint, key: Option<&str>, ask: &Ask<'_>) -> Outcome {
    let mut witness = witness(endpoint, ask);
    let key = key.map(str::trim).filter(|key| !key.is_empty());
    let answer = put(endpoint, key, ask, &mut witness);
    let mut outcome = Outcome { answer, witness };
    if let Some(key) = key {
        keep_out(key, &mut outcome);
    }
    outcome
}

fn put(
    endpoint: &Endpoint,
    key: Option<&str>,
    ask: &Ask<'_>,
    witness: &mut Witness,
) -> Result<Vec<u8>, Failure> {
    let body = dialect::request(endpoint, ask, &mut witness.notes).to_string().into_bytes();
    let call = prepare(endpoint, key, endpoint.dialect.path(), Some(body), ask.limits)?;
    let response = make(call, ask.stop).map_err(|broken| status::broken(broken, ask.limits.wall))?;
    witness.request_id = ["x-request-id", "request-id"].into_iter().find_map(|name| header(&response, name));
    if response.status != 200 {
        return Err(status::failure(&response));
    }
    let answer = dialect::answer(endpoint.dialect, &response.body, ask.packet.len(), witness)?;
    witness.isolation = vec![
        "the packet was the only message of the call".to_owned(),
        "the call named no tool, no file and no earlier conversation".to_owned(),
    ];
    Ok(answer)
}

/// A call to something below `/v1`, with the headers of its dialect.
fn prepare(
    endpoint: &Endpoint,
    key: Option<&str>,
    path: &str,
    body: Option<Vec<u8>>,
    limits: Limits,
) -> Result<Call, Failure> {
    endpoint.address.allowed(endpoint.insecure).map_err(|why| Failure::gone("insecure", why))?;
    let plain = HeaderValue::from_static;
    let mut headers = Vec::new();
    if body.is_some() {
        headers.push(("content-type", plain("application/json")));
    }
    let secret = |text: String| {
        let value = HeaderValue::from_str(&text).ok().filter(|_| text.is_ascii());
        let wrong =
            || Failure::gone("unauthorized", "the key has characters that no header holds".to_owned());
        value.ok_or_else(wrong).map(|mut value| {
            value.set_sensitive(true);
            value
        })
    };
    match endpoint.dialect {
        Dialect::Openai => {
            if let Some(key) = key {
                headers.push(("authorization", secret(format!("Bearer {key}"))?));
            }
        }
        Dialect::Anthropic => {
            headers.push(("anthropic-version", plain(ANTHROPIC_VERSION)));
            if let Some(key) = key {
                headers.push(("x-api-key", secret(key.to_owned())?));
            }
        }
    }
    let (url, loopback) = (endpoint.address.below_v1(path), endpoint.address.is_loopback());
    Ok(Call { url, headers, body, loopback, limits })
}

fn header(response: &Response, name: &str) -> Option<String> {
    named(response.headers.get(name).and_then(|value| value.to_str().ok()).map(Value::from).as_ref())
}

/// Asks an endpoint for the models that it has: whether it is there and takes the key. No model answers.
///
/// # Errors
/// Why it is not there, in words.
pub fn reach(endpoint: &Endpoint, key: Option<&str>, wall: Duration) -> Result<Reached, String> {
    let key = key.map(str::trim).filter(|key| !key.is_empty());
    let limits = Limits { wall, idle: wall, bytes: MAX_LIST };
    let call = prepare(endpoint, key, "models", None, limits).map_err(|failure| failure.detail)?;
    let made = make(call, &AtomicBool::new(false));
    let response = made.map_err(|broken| status::broken(broken, wall).detail)?;
    if response.status != 200 {
        return Err(format!("GET /v1/models: {}", status::failure(&response).detail));
    }
    let Ok(list) = serde_json::from_slice::<Value>(&response.body) else {
        return Err("GET /v1/models: the response is not JSON".to_owned());
    };
    let listed = list.get("data").and_then(Value::as_array).into_iter().flatten();
    let models: Vec<String> = listed
        .filter_map(|model| named(model.get("id")))
        .filter(|model| key.is_none_or(|key| !model.contains(key)))
        .collect();
    let plural = if models.len() == 1 { "" } else { "s" };
    Ok(Reached { said: format!("GET /v1/models answered 200 with {} model{plural}", models.len()), models })
}
