//! Records what is remembered of canonical messages: sessions, slots, and the options of
//! permissions. The stores are in `memory`, `sessions` and `pending`.

use std::sync::Arc;

use super::asked::Asked;
use super::guard::holds;
use super::message::Message;
use super::permission::Offered;
use super::table::{Per, Selector};
use super::translate::{PERMISSION, Translator};
use crate::jsonrpc::{Kind, Side};

impl Translator {
    /// Records what a canonical message says of sessions and slots.
    pub(super) fn see(&mut self, from: Side, message: &Message<'_>, asked: &mut Asked) {
        let answers = message.kind.is_answer();
        let method: &str = if answers {
            &asked.canonical.clone()
        } else {
            &message.method
        };
        if message.kind == Kind::Request {
            let kept = self.program.remembers() || self.program.watch.requests();
            if kept {
                asked.session = message.session();
            }
            match method {
                PERMISSION => asked.offered = Some(Offered::read(&message.body.json())),
                "session/set_config_option" | "session/set_mode" if kept => {
                    let json = message.body.json();
                    asked.params = (json.len() < 4096).then(|| json.into_owned());
                }
                _ => {}
            }
        }
        if self.program.watch.any() {
            let session = asked.session.as_deref();
            let watch = self.program.watch;
            self.sessions
                .see(watch, from, message.kind, method, session, &message.body);
        }
        if self.program.memory.is_empty() {
            return;
        }
        let program = Arc::clone(&self.program);
        for (at, memory) in program.memory.iter().enumerate() {
            let slot = &memory.slot;
            let kind_fits = match slot.on.what {
                Selector::Method(_) => !answers,
                Selector::Answers(_) => message.kind == Kind::Result,
                Selector::ErrorsOf(_) => message.kind == Kind::Error,
            };
            let named = slot.on.what.names().canonical.as_deref() == Some(method);
            if !kind_fits || !named || slot.on.from != from || !holds(&message.body, &slot.when) {
                continue;
            }
            let Some(look) = message.body.look(&slot.at) else {
                continue;
            };
            let value = look.json();
            // In an update `null` means the same as a missing member: the value is unchanged.
            if &*value == b"null" {
                continue;
            }
            let key = slot.by.as_ref().and_then(|by| message.body.text_at(by));
            match slot.per {
                Per::Request => asked.slots.push((at, value.into_owned().into())),
                Per::Connection => {
                    self.memory
                        .keep(at, "", key.as_deref().unwrap_or_default(), &value);
                }
                Per::Session => {
                    let own = message.session();
                    let session = own
                        .as_deref()
                        .or(asked.session.as_deref())
                        .unwrap_or_default();
                    self.memory
                        .keep(at, session, key.as_deref().unwrap_or_default(), &value);
                }
            }
        }
    }
}
