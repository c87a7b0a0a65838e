//! Records what is remembered of canonical messages: sessions, slots, and the options of
//! permissions.

use std::sync::Arc;

use super::guard::holds;
use super::message::Message;
use super::pending::PendingRequest;
use super::permission::OfferedOptions;
use super::table::{Selector, SlotScope};
use super::translator::{PERMISSION, Translator, slot_key};
use crate::jsonrpc::{Kind, Side};

impl Translator {
    /// Records the sessions and slots that a canonical message contains.
    pub(super) fn track(
        &mut self,
        from: Side,
        message: &Message<'_>,
        pending: &mut PendingRequest,
    ) {
        let answers = message.kind.is_answer();
        let method: &str = if answers {
            &pending.canonical.clone()
        } else {
            &message.method
        };
        if message.kind == Kind::Request {
            let tracked =
                self.program.remembers() || self.program.tracking.follows(&message.method);
            if tracked {
                pending.session = message.session();
            }
            match method {
                PERMISSION => pending.offered = Some(OfferedOptions::read(&message.body.json())),
                "session/set_config_option" | "session/set_mode" if tracked => {
                    let json = message.body.json();
                    pending.params = (json.len() < 4096).then(|| json.into_owned());
                }
                _ => {}
            }
        }
        if self.program.tracking.turns {
            let session = pending.session.as_deref();
            let tracking = self.program.tracking;
            self.sessions
                .track(tracking, from, message.kind, method, session, &message.body);
        }
        if self.program.memory.is_empty() {
            return;
        }
        let program = Arc::clone(&self.program);
        for (name, slot) in &program.memory {
            let kind_fits = match slot.on.what {
                Selector::Method(_) => !answers,
                Selector::Answers(_) => message.kind == Kind::Result,
                Selector::ErrorsOf(_) => message.kind == Kind::Error,
            };
            let is_named = slot.on.what.names().canonical.as_deref() == Some(method);
            if !kind_fits || !is_named || slot.on.from != from || !holds(&message.body, &slot.when)
            {
                continue;
            }
            let Some(look) = message.body.get(&slot.at) else {
                continue;
            };
            let value = look.json();
            // In an update `null` means the same as a missing member: the value is unchanged.
            if &*value == b"null" {
                continue;
            }
            let key = slot.by.as_ref().and_then(|by| message.body.text_at(by));
            match slot.per {
                SlotScope::Request => {
                    let value = value.into_owned().into();
                    pending.slots.push((name.clone().into(), value));
                }
                SlotScope::Connection => {
                    let key = slot_key(name, "", key.as_deref());
                    self.memory.insert(&key, value.into());
                }
                SlotScope::Session => {
                    let own = message.session();
                    let session = own.as_deref().or(pending.session.as_deref());
                    let key = slot_key(name, session.unwrap_or_default(), key.as_deref());
                    self.memory.insert(&key, value.into());
                }
            }
        }
    }
}
