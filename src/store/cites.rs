//! Which blobs an event cites. An event that names a blob and is not listed here would let the blob count
//! as uncited; nothing else depends on this list.

use crate::model::checkpoint::BindingsRef;
use crate::model::event::{Event, Text};
use crate::model::external::Payload;
use crate::model::hash::Hash;

/// The blobs that must exist because this event was recorded.
pub(super) fn cited(event: &Event) -> Vec<Hash> {
    match event {
        Event::JobFrozen { job } => job.places.iter().map(|place| place.hash).chain([job.blob]).collect(),
        Event::ReplyReceived { reply } => match reply.said {
            Some(Text::Blob(hash)) => vec![hash],
            _ => Vec::new(),
        },
        Event::HandoffOpened { handoff } => {
            let task = handoff.task.iter();
            task.flat_map(|task| task.places.iter().map(|place| place.hash).chain([task.blob])).collect()
        }
        Event::ResultStored { result } => vec![result.blob],
        Event::EffectCleared { reason: Text::Blob(hash), .. } => vec![*hash],
        Event::ConflictRefused { value, .. } => value.iter().copied().collect(),
        Event::CheckpointSaved { checkpoint } => match checkpoint.bindings {
            BindingsRef::Blob(hash) => vec![hash],
            BindingsRef::Inline(_) => Vec::new(),
        },
        Event::ExternalReceived { event } => match event.payload {
            Some(Payload::Blob(hash)) => vec![hash],
            _ => Vec::new(),
        },
        Event::ReceiptRecorded { receipt } => {
            let reason = match &receipt.contested {
                Some(Text::Blob(hash)) => Some(*hash),
                _ => None,
            };
            receipt.result_hash.into_iter().chain(reason).collect()
        }
        _ => Vec::new(),
    }
}
