//! Effects in the fold, and how they are looked up: by key, by session while open, by path and by receipt.

use super::Position;
use crate::model::effect::{Effect, EffectState};
use crate::model::event::Event;
use crate::model::id::{EffectId, Id, Name, ReceiptId, SessionId};
use crate::model::state::State;
use crate::model::tables::{Key, Table};

fn by(what: &str) -> Key {
    Key::new(Table::Effect).text(what)
}

impl State {
    pub(super) fn effect_event(&mut self, event: &Event, at: Position) {
        match event {
            Event::EffectPlanned { effect } => self.effect_planned(effect, at),
            Event::EffectStarted { effect, .. } => self.change(effect, |effect: &mut Effect| {
                effect.state = EffectState::Started;
                effect.started_at = Some(at.at);
            }),
            Event::EffectDone { effect, witness, .. } => {
                self.change(effect, |effect: &mut Effect| {
                    effect.state = EffectState::Done;
                    effect.witness = Some(*witness);
                    effect.ended_at = Some(at.at);
                });
                self.effect_ended(effect);
            }
            Event::EffectCleared { effect, reason, .. } => {
                self.effect_not_run(effect);
                self.change(effect, |effect: &mut Effect| {
                    effect.state = EffectState::Cleared;
                    effect.reason = Some(reason.clone());
                    effect.ended_at = Some(at.at);
                });
                self.effect_ended(effect);
            }
            _ => {}
        }
    }

    fn effect_planned(&mut self, effect: &Effect, at: Position) {
        self.tables.put(super::entity_key(effect.id.as_str()), effect);
        self.enlisted(effect, Some(&effect.session), Some(&effect.resource), at);
        self.tables.put(by("key").text(effect.key.as_str()), &effect.id);
        self.tables.put(by("open").text(effect.session.as_str()).text(effect.id.as_str()), &effect.id);
        for receipt in &effect.receipts {
            self.tables.put(by("receipt").text(receipt.as_str()).number(at.place), &effect.id);
        }
        if let Some(last) = self.effect_on(&effect.path)
            && last.state == EffectState::Done
            && effect.before == crate::model::effect::FileState::File(last.required)
        {
            self.change(&last.id, |last: &mut Effect| last.followed_by = Some(effect.id.clone()));
            self.change(&effect.id, |effect: &mut Effect| effect.follows = Some(last.id.clone()));
        }
        self.tables.put(by("path").text(&effect.path), &effect.id);
    }

    /// An effect is open from its plan until it is done or cleared.
    fn effect_ended(&mut self, id: &EffectId) {
        if let Some(effect) = self.get::<Effect>(id) {
            self.tables.delete(by("open").text(effect.session.as_str()).text(id.as_str()));
        }
    }

    /// A plan that is given up before anything was started for it leaves the path to the effect before it.
    fn effect_not_run(&mut self, id: &EffectId) {
        let planned = self.get::<Effect>(id).filter(|effect| effect.state == EffectState::Planned);
        if let Some(Effect { path, follows: Some(before), .. }) = planned {
            self.change(&before, |before: &mut Effect| before.followed_by = None);
            self.tables.put(by("path").text(&path), &before);
        }
    }

    /// The newest effect of a key.
    pub fn effect_of(&self, key: &Name) -> Option<Effect> {
        let id: EffectId = self.tables.get(&by("key").text(key.as_str()))?;
        self.get(&id)
    }

    /// The newest effect on a path.
    pub fn effect_on(&self, path: &str) -> Option<Effect> {
        let id: EffectId = self.tables.get(&by("path").text(path))?;
        self.get(&id)
    }

    /// The effects of a session that are neither done nor cleared.
    pub fn open_effects(&self, session: &SessionId) -> impl Iterator<Item = Effect> + use<'_> {
        let ids = self.tables.scan::<EffectId>(&by("open").text(session.as_str()));
        ids.filter_map(|id| self.get::<Effect>(&id))
    }

    /// The effects that rest on a receipt, in the order of their plans.
    pub fn effects_of_receipt(&self, receipt: &ReceiptId) -> impl Iterator<Item = Effect> + use<'_> {
        let ids = self.tables.scan::<EffectId>(&by("receipt").text(receipt.as_str()));
        ids.filter_map(|id| self.get::<Effect>(&id))
    }
}
