//! Endpoints: one call for one answer, in the words of the two dialects that providers and local servers
//! speak. Owns what is said to an endpoint and how its silence, refusals and failures are called. Follows no
//! redirect, retries nothing, reads no verdict, and lets no key into a witness or an error
//! (semantic-execution contract, 02, 05 and 12).

use crate::adapters::ask::Ask;
#[cfg(not(feature = "http"))]
use crate::adapters::ask::{Failure, Outcome};
use crate::model::witness::Witness;
use crate::words;

mod address;
#[cfg(feature = "http")]
mod call;
#[cfg(feature = "http")]
mod dialect;
#[cfg(feature = "http")]
mod exchange;
#[cfg(feature = "http")]
mod status;
#[cfg(feature = "http")]
mod wait;

pub use address::Address;
#[cfg(feature = "http")]
pub use exchange::{ask, reach};

/// Bytes that a response has at most.
pub const MAX_RESPONSE: u64 = 16 * 1024 * 1024;
/// Tokens that an answer may have where the settings do not say.
pub const MAX_TOKENS: u64 = 16_384;

words! {
    /// How an endpoint is spoken to.
    Dialect {
        /// `POST /v1/chat/completions`, as many local servers do too.
        Openai = "openai",
        /// `POST /v1/messages`.
        Anthropic = "anthropic",
    }
}

/// One endpoint, as the user's settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// What the settings call it.
    pub provider: String,
    /// How it is spoken to.
    pub dialect: Dialect,
    /// Where it is.
    pub address: Address,
    /// Whether plain HTTP may go to another machine.
    pub insecure: bool,
    /// Tokens that an answer may have; none: what the endpoint itself allows, or [`MAX_TOKENS`] where the
    /// dialect must say a number.
    pub max_tokens: Option<u64>,
}

/// What a look at an endpoint saw, without having a model answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// What it said, in words.
    pub said: String,
    /// The models that it lists.
    pub models: Vec<String>,
}

/// Without the feature there is no endpoint: what would be called is not there.
#[cfg(not(feature = "http"))]
pub fn ask(endpoint: &Endpoint, _key: Option<&str>, ask: &Ask<'_>) -> Outcome {
    Outcome { answer: Err(not_built()), witness: witness(endpoint, ask) }
}

/// Without the feature there is nothing to look with.
///
/// # Errors
/// Always, in words.
#[cfg(not(feature = "http"))]
pub fn reach(
    _endpoint: &Endpoint,
    _key: Option<&str>,
    _wall: std::time::Duration,
) -> Result<Reached, String> {
    Err(not_built().detail)
}

#[cfg(not(feature = "http"))]
fn not_built() -> Failure {
    let detail = "this nf is built without endpoints (cargo build with the feature http)";
    Failure::gone("not_built", detail.to_owned())
}

/// What is known before a call.
fn witness(endpoint: &Endpoint, ask: &Ask<'_>) -> Witness {
    Witness {
        provider: Some(endpoint.provider.clone()),
        model_requested: ask.model.map(str::to_owned),
        ..Witness::default()
    }
}

#[cfg(test)]
#[cfg(not(feature = "http"))]
mod tests {
    use super::*;
    use crate::adapters::ask::Limits;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn without_the_feature_an_endpoint_is_not_there_and_that_is_said() {
        let address = Address::parse("http://localhost:1").unwrap();
        let (provider, dialect) = ("w".to_owned(), Dialect::Openai);
        let endpoint = Endpoint { provider, dialect, address, insecure: false, max_tokens: None };
        let second = Duration::from_secs(1);
        let (limits, stop) = (Limits { wall: second, idle: second, bytes: 1 }, AtomicBool::new(false));
        let asked = Ask { packet: "p", schema: None, model: None, limits, stop: &stop };
        let failure = ask(&endpoint, None, &asked).answer.unwrap_err();
        assert!(
            failure.unavailable && failure.reason == "not_built" && failure.detail.contains("feature http")
        );
        assert_eq!(reach(&endpoint, None, second), Err(failure.detail));
    }
}
