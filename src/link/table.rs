//! The links that a relay keeps, and who may resume which. Each is counted as a client by those who
//! limit clients, whether it has an attachment or not.
//!
//! # Why
//!
//! **Two keys of a link are valid until the newer one was used.** A key is for one resumption, and
//! the next one comes with the welcome; if that is lost with its connection, the client has only
//! the key before.
//!
//! **A key alone admits no client.** The client has authenticated on its new connection, and has to be
//! the principal that the link belongs to. The answer is the same for a wrong key, a link of
//! another principal and a link that never was, so none can be searched for.

use std::collections::HashMap;
use std::sync::Arc;

use super::header::{Hello, Refusal, RefusalCode, ResumeKey, Welcome};
use auth::{AuthMethod, Digest, Principal};

/// The version of the protocol.
const VERSION: u32 = 1;

/// The links of a relay, each with what it is kept for.
#[derive(Debug)]
pub struct LinkTable<T> {
    links: HashMap<String, Kept<T>>,
}

/// Random texts for a new link and a new key, of at least 128 bits each.
#[derive(Clone, Debug)]
pub struct NewKeys {
    /// The name of the link, if it is new.
    pub link: String,
    /// Its epoch, if it is new.
    pub epoch: String,
    /// The key for the next resumption.
    pub key: ResumeKey,
}

/// One link.
#[derive(Debug)]
struct Kept<T> {
    principal: Arc<Principal>,
    epoch: String,
    generation: u64,
    /// The key of the last resumption's welcome, and the one before, until that is used.
    keys: [Option<Digest>; 2],
    value: T,
}

impl<T> Default for LinkTable<T> {
    fn default() -> Self {
        Self {
            links: HashMap::new(),
        }
    }
}

impl<T> LinkTable<T> {
    /// Opens a link for a client, or resumes its own. Returns the greeting, whose `rx`, `grace_ms`
    /// and `window` the caller fills in, with what the link is kept for. `value` makes that for a
    /// new link; it is given that of another link of the same principal, if there is one.
    ///
    /// # Errors
    /// The refusal to send; nothing has changed then.
    pub fn open(
        &mut self,
        hello: &Hello,
        principal: &Arc<Principal>,
        new: NewKeys,
        value: impl FnOnce(Option<&T>) -> T,
    ) -> Result<(Welcome, &mut T), Refusal> {
        if !hello.v.contains(&VERSION) {
            let detail = format!("only version {VERSION} is spoken here");
            return Err(Refusal::new(RefusalCode::Version, detail));
        }
        // Attachments are numbered from 1, and there has to be a next one.
        if [0, u64::MAX].contains(&hello.generation) {
            let detail = format!("{} is no number of an attachment", hello.generation);
            return Err(Refusal::new(RefusalCode::Gap, detail));
        }
        match &hello.link {
            Some(link) => self.resume(link, hello, principal, new),
            None => self.begin(hello, principal, new, value),
        }
    }

    /// Forgets a link, whose conversation has ended.
    pub fn remove(&mut self, link: &str) -> Option<T> {
        self.links.remove(link).map(|kept| kept.value)
    }

    fn begin(
        &mut self,
        hello: &Hello,
        principal: &Arc<Principal>,
        new: NewKeys,
        value: impl FnOnce(Option<&T>) -> T,
    ) -> Result<(Welcome, &mut T), Refusal> {
        if principal.auth_method == AuthMethod::Anonymous {
            let detail = "a link is kept for clients that have authenticated";
            return Err(Refusal::new(RefusalCode::Auth, detail));
        }
        let mut others = self.links.values();
        let other = others.find(|kept| *kept.principal == **principal);
        let value = value(other.map(|kept| &kept.value));
        let welcome = welcome(&new, hello.generation, false);
        let kept = self.links.entry(new.link).insert_entry(Kept {
            principal: Arc::clone(principal),
            epoch: new.epoch,
            generation: hello.generation,
            keys: [Some(digest(&new.key)), None],
            value,
        });
        Ok((welcome, &mut kept.into_mut().value))
    }

    fn resume(
        &mut self,
        link: &str,
        hello: &Hello,
        principal: &Arc<Principal>,
        new: NewKeys,
    ) -> Result<(Welcome, &mut T), Refusal> {
        let unknown = || {
            let detail = "there is no such link, or its key is another one";
            Refusal::new(RefusalCode::UnknownLink, detail)
        };
        let kept = self.links.get_mut(link).ok_or_else(unknown)?;
        let shown = digest(&hello.key.clone().unwrap_or_default());
        let is_key = |key: &Option<Digest>| key.is_some_and(|key| key.is(&shown));
        if !principal.finds(&kept.principal) || !kept.keys.iter().any(is_key) {
            return Err(unknown());
        }
        if hello.epoch.as_ref() != Some(&kept.epoch) {
            let detail = "the relay has lost the state of the link";
            return Err(Refusal::new(RefusalCode::EpochChanged, detail));
        }
        if hello.generation <= kept.generation {
            let detail = format!("attachment {} was already begun", kept.generation);
            return Err(Refusal::new(RefusalCode::Busy, detail));
        }
        kept.generation = hello.generation;
        kept.keys = [Some(digest(&new.key)), Some(shown)];
        let keys = NewKeys {
            link: link.to_owned(),
            epoch: kept.epoch.clone(),
            key: new.key,
        };
        Ok((welcome(&keys, hello.generation, true), &mut kept.value))
    }
}

fn digest(key: &ResumeKey) -> Digest {
    Digest::of(key.0.as_bytes())
}

fn welcome(keys: &NewKeys, generation: u64, resumed: bool) -> Welcome {
    Welcome {
        v: VERSION,
        link: keys.link.clone(),
        epoch: keys.epoch.clone(),
        generation,
        key: keys.key.clone(),
        resumed,
        ..Welcome::default()
    }
}
