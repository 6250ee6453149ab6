//! Applying an event, once for each named consumer. The receipt says that somebody acted on it, and nothing
//! more: an event moves no gate, whatever the consumer is called (control-plane contract, 07 and 12).

use super::{Application, Consumed};
use crate::error::{Error, Kind, Result};
use crate::model::check::{Check, failed};
use crate::model::decision::{Decision, Turn};
use crate::model::event::Event;
use crate::model::external::ExternalEvent;
use crate::model::handoff::Handoff;
use crate::model::id::{HandoffId, Name};
use crate::model::job::{Polarity, Verdict};
use crate::model::result::Receipt;
use crate::model::run::Run;
use crate::model::session::Session;
use crate::model::state::State;

/// Everything that the consumption of an event is decided on.
pub struct Consume {
    /// The event.
    pub event: ExternalEvent,
    /// What it carries, from the bytes that were kept.
    pub payload: Option<serde_json::Value>,
    /// Who applies it.
    pub consumer: Name,
    /// The session that acts, and its current run.
    pub acting: (Session, Run),
    /// The receipt of this consumer for this event.
    pub held: Option<Receipt>,
}

/// Applies an event for a consumer, once.
///
/// # Errors
/// `not_consumable` for what only reports a handoff's result; `damaged` where the kept bytes do not mean
/// what was recorded.
pub fn consume(turn: &mut Turn<'_>, consume: Consume) -> Result<Decision<Consumed>> {
    let event = &consume.event;
    if let Some(handoff) = event.reports() {
        return Err(only_reports(turn.state, event, handoff, &consume.consumer));
    }
    let got = ExternalEvent::hash_of(&event.meaning(consume.payload.as_ref()));
    let checks = vec![Check::equal("payload", event.payload_hash.hex(), got.hex())];
    if !failed(&checks).is_empty() {
        let message = format!("event {} does not mean what was recorded", event.id);
        return Err(Error::new(Kind::Damaged, message)
            .because(format!("want {}, got {got}", event.payload_hash))
            .details(serde_json::json!({"checks": checks})));
    }
    if let Some(receipt) = &consume.held {
        return Ok(Decision::nothing(Consumed::of(Application::Already, receipt, &consume.acting)));
    }
    let receipt = Receipt {
        id: turn.id()?,
        source: event.id.clone().into(),
        consumer: consume.consumer.clone(),
        result_hash: None,
        payload_hash: Some(event.payload_hash),
        fingerprint: None,
        outcome: Verdict { value: None, polarity: Polarity::None, route: None },
        attempt: None,
        checks,
        history: None,
        earlier: Vec::new(),
        contested: None,
        seq: turn.seq(),
        at: turn.at(),
    };
    let consumed = Consumed::of(Application::New, &receipt, &consume.acting);
    Ok(Decision::new(vec![Event::ReceiptRecorded { receipt }], consumed))
}

/// The word that a result is there is not the result: what was checked is applied, not the report of it.
fn only_reports(state: &State, event: &ExternalEvent, handoff: &HandoffId, consumer: &Name) -> Error {
    let result = state.get::<Handoff>(handoff).and_then(|handoff| handoff.result);
    let error = Error::new(
        Kind::NotConsumable,
        format!("event {} reports a result of handoff {handoff} and is not the result", event.id),
    )
    .details(serde_json::json!({"event": event.id, "handoff": handoff, "result": result}));
    match result {
        Some(result) => error
            .because(format!("the result is {result}"))
            .fix(format!("nf consume {result} --as {consumer}")),
        None => error
            .because(format!("handoff {handoff} has no valid result yet"))
            .fix(format!("nf show {handoff}; nf reply takes its answer")),
    }
}
