//! What a status, and a call that failed, mean: whether the way itself is gone, whether another try may help,
//! and how it is said without a word of what was sent, answered or kept secret.

use std::io::ErrorKind;

use serde_json::Value;
use ureq::Error;

use super::call::{Broken, LEADS_AWAY, Response};
use super::{MAX_RESPONSE, wait};
use crate::adapters::ask::Failure;

/// Characters of a provider's own word for a failure that are kept.
const MAX_WORD: usize = 48;

/// The failure that a status other than 200 means.
pub fn failure(response: &Response) -> Failure {
    let status = response.status;
    let word = word(&response.body);
    let full = word.as_ref().is_some_and(|word| word.contains("context"));
    let word = word.map_or_else(String::new, |word| format!(" ({word})"));
    let said = |what: &str| format!("the endpoint answered {status}{word}: {what}");
    let mut failure = match status {
        401 => Failure::gone("unauthorized", said("the key is missing or not taken; see key_env")),
        403 => Failure::gone("forbidden", said("the key may not do this")),
        404 => Failure::gone("not_found", said("the address or the model is not there; see url and model")),
        402 => Failure::failed("quota", false, said("it wants to be paid")),
        408 => Failure::failed("timeout", true, said("it waited too long")),
        429 => Failure::failed("quota", true, said("too many requests, or none left")),
        500.. => Failure::failed("server_error", true, said("it failed")),
        300..=399 => Failure::failed("redirect", false, said("redirects are not followed; see url")),
        // What local servers and providers answer to a packet that is longer than the model's context.
        400 if full => Failure::failed("too_large", false, said("the model's context is too small for it")),
        413 => Failure::failed("too_large", false, said("the packet is too large for it")),
        _ => Failure::failed("bad_request", false, said("it does not take the request; see model")),
    };
    if failure.retryable {
        failure.retry_after = wait::asked(&response.headers);
    }
    failure
}

/// The provider's own word for what happened, such as `invalid_request_error`. Its sentences are left out:
/// they repeat what was sent, and sometimes a part of the key.
fn word(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let known = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let plain = |word: &&str| {
        let letters = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        letters && !word.is_empty() && word.len() <= MAX_WORD
    };
    let found = ["/error/code", "/error/type", "/error/error/type"].into_iter().filter_map(known).find(plain);
    found.map(str::to_owned)
}

/// The failure that a call without a whole response means.
pub fn broken(broken: Broken, wall: std::time::Duration) -> Failure {
    match broken {
        Broken::Stopped => Failure::failed("stopped", true, "the answer was wanted no longer".to_owned()),
        Broken::Wall => timeout(wall),
        Broken::Idle => {
            let detail = "the endpoint began to answer and then said nothing more";
            Failure::failed("timeout", true, detail.to_owned())
        }
        Broken::TooLarge => {
            let detail = format!("the response is over its limit, at most {MAX_RESPONSE} bytes");
            Failure::failed("too_large", false, detail)
        }
        Broken::Client(error) => client(&error, wall),
    }
}

fn timeout(wall: std::time::Duration) -> Failure {
    Failure::failed("timeout", true, format!("no whole answer in {} s", wall.as_secs_f32()))
}

fn client(error: &Error, wall: std::time::Duration) -> Failure {
    let gone = |reason, detail: &str| Failure::gone(reason, detail.to_owned());
    let failed = |reason, detail: &str| Failure::failed(reason, true, detail.to_owned());
    match error {
        Error::Timeout(_) => timeout(wall),
        Error::HostNotFound => gone("unreachable", "no such host"),
        Error::Other(why) if why.to_string() == LEADS_AWAY => gone("unreachable", LEADS_AWAY),
        Error::ConnectionFailed => gone("unreachable", "no connection"),
        Error::Tls(_) | Error::Rustls(_) | Error::TlsRequired => {
            gone("unreachable", "no trusted connection (TLS); see url")
        }
        Error::LargeResponseHeader(..) => failed("bad_response", "the headers are over their limit"),
        Error::Protocol(_) | Error::Http(_) => failed("bad_response", "the response is not HTTP"),
        Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => gone("unreachable", "the connection was refused"),
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable => {
                gone("unreachable", "the network does not lead there")
            }
            ErrorKind::TimedOut | ErrorKind::WouldBlock => timeout(wall),
            ErrorKind::InvalidData => gone("unreachable", "no trusted connection (TLS); see url"),
            // The lookup of a name has no kind of its own.
            _ if error.to_string().contains("lookup address") => gone("unreachable", "no such host"),
            _ => failed("connection_lost", "the connection ended before the response was whole"),
        },
        _ => failed("connection_lost", "the call failed"),
    }
}
