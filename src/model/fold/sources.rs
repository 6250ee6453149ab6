//! The part of the fold that knows what a consumer applies: events from outside, and the receipts of results
//! and events.

use super::{Position, entity_key};
use crate::model::external::ExternalEvent;
use crate::model::id::Id;
use crate::model::result::{Receipt, Source, StoredResult};
use crate::model::state::State;
use crate::model::tables::{Key, Table};

impl State {
    pub(super) fn event_received(&mut self, event: &ExternalEvent, at: Position) {
        self.tables.put(entity_key(event.id.as_str()), event);
        self.enlisted(event, self.session_of(event).as_ref(), event.resource.as_ref(), at);
        self.tables.put(Key::new(Table::EventKey).text(event.key.as_str()), &event.id);
    }

    pub(super) fn receipt_recorded(&mut self, receipt: &Receipt, at: Position) {
        self.tables.put(entity_key(receipt.id.as_str()), receipt);
        let session = self.session_of_source(&receipt.source);
        self.enlisted(receipt, session.as_ref(), None, at);
        let by_source =
            Key::new(Table::Receipt).text(receipt.source.as_str()).text(receipt.consumer.as_str());
        self.tables.put(by_source, &receipt.id);
        if let Some(fingerprint) = &receipt.fingerprint {
            let by_question = Key::new(Table::Question).text(fingerprint).text(receipt.consumer.as_str());
            self.tables.put(by_question, &receipt.id);
        }
        let (consumer, id) = (receipt.consumer.clone(), receipt.id.clone());
        match &receipt.source {
            Source::Result(source) => self.change(source, |result: &mut StoredResult| {
                result.consumed.insert(consumer, id);
            }),
            Source::Event(source) => self.change(source, |event: &mut ExternalEvent| {
                event.consumed.insert(consumer, id);
            }),
        }
    }
}
