//! What a gateway shows a host: who the client is, signed.
//!
//! # Why
//!
//! **An account of NATS is not enough.** With one alone, a program could claim to be any principal. A
//! host accepts only what the gateways have signed whose public keys it was given, for 30 s, and each
//! ticket once.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use auth::{Agents, AuthMethod, Grant, Principal};
use panics::SharedMutex;

/// How long a ticket is valid, in seconds.
const VALID: u64 = 30;
/// How far the clocks of a gateway and a host may differ, in seconds.
const SKEW: u64 = 30;
/// Tickets that are remembered until they expire.
const MAX_USED: usize = 1 << 16;
/// Longest ticket, in bytes.
const MAX_TICKET: usize = 16 << 10;
/// What is signed begins with this, so that it is nothing else.
const DOMAIN: &[u8] = b"acp-relay ticket 1\n";

/// What a ticket says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Whom it concerns.
    #[serde(flatten)]
    pub guest: Guest,
    /// The host.
    pub host: String,
    /// Until when the ticket is valid, in seconds since 1970.
    pub until: u64,
    /// A random text.
    pub nonce: String,
    /// What for.
    pub purpose: Purpose,
    /// The public key of the gateway that has signed it, once it is accepted.
    #[serde(skip)]
    pub signer: String,
}

/// A client that a gateway has authenticated.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guest {
    /// The name of the principal.
    pub name: String,
    /// How the gateway has authenticated it.
    pub method: AuthMethod,
    /// The digest of its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When its credential expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// The agent that it may use.
    pub agent: String,
}

/// What a ticket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A connection that carries a new link.
    Begin,
    /// A connection that carries a link which the host has.
    Resume,
    /// Placing nothing more on the host.
    Drain,
    /// Naming the clients whose links the gateway has opened or resumed.
    List,
    /// Ending what the host has for a client, whose credentials are not valid any more.
    Revoke,
}

/// The key of a gateway.
#[derive(Debug)]
pub struct Signer(KeyPair);

/// What a host verifies tickets with.
#[derive(Debug)]
pub struct Verifier {
    /// The public keys of gateways, one a line. Read for each ticket, so that a key that is removed
    /// is not trusted any more.
    trust: PathBuf,
    host: String,
    /// The nonces of valid tickets that were used, and until when they are valid.
    used: SharedMutex<HashMap<String, u64>>,
}

/// Why a ticket is not accepted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// It is no ticket.
    #[error("it is no ticket")]
    Malformed,
    /// It is not signed by a gateway that is trusted.
    #[error("no gateway that this host trusts has signed the ticket (--cluster-trust)")]
    Untrusted,
    /// It is for another host.
    #[error("the ticket is for another host")]
    OtherHost,
    /// It is not valid now.
    #[error("the ticket has expired, or the clocks of the gateway and the host differ")]
    Expired,
    /// It was used before.
    #[error("the ticket was used before")]
    Used,
    /// Too many tickets are remembered.
    #[error("too many tickets came")]
    TooMany,
}

impl Claims {
    /// What a gateway says of a principal, without what is the same in all of its tickets; `None`
    /// for a client without credentials.
    #[must_use]
    pub fn of(
        principal: &Principal,
        agent: &str,
        host: &str,
        purpose: Purpose,
        now: u64,
    ) -> Option<Self> {
        let method = principal.auth_method;
        // The gateway's own user has another token on each machine.
        let key = principal.key.filter(|_| method == AuthMethod::Token);
        (method != AuthMethod::Anonymous).then(|| Self {
            guest: Guest {
                name: principal.name.to_string(),
                method,
                key: key.map(|key| key.to_string()),
                expires: principal.expires,
                agent: agent.to_owned(),
            },
            host: host.to_owned(),
            until: now + VALID,
            nonce: uuid::Uuid::new_v4().simple().to_string(),
            purpose,
            signer: String::new(),
        })
    }
}

impl Guest {
    /// The principal, which may use its agent alone.
    #[must_use]
    pub fn principal(&self, withdrawn: Option<Arc<CancellationToken>>) -> Principal {
        Principal {
            name: Arc::from(&*self.name),
            auth_method: self.method,
            grant: Grant {
                agents: Agents::These([self.agent.clone()].into()),
                admin: false,
            },
            key: self.key.as_ref().and_then(|key| key.parse().ok()),
            expires: self.expires,
            withdrawn,
        }
    }
}

impl Signer {
    /// The key of a seed.
    ///
    /// # Errors
    /// It is none.
    pub fn from_seed(seed: &str) -> Result<Self, String> {
        let pair = KeyPair::from_seed(seed.trim());
        pair.map(Self).map_err(|error| {
            format!("it holds no seed of an nkey ({error}); `acp-relay cluster key` makes one")
        })
    }

    /// A new key, and its seed.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn generate() -> Result<(Self, String), String> {
        let pair = KeyPair::new_user();
        let seed = pair.seed().map_err(|error| error.to_string())?;
        Ok((Self(pair), seed))
    }

    /// What hosts verify its tickets with.
    #[must_use]
    pub fn public_key(&self) -> String {
        self.0.public_key()
    }

    /// The ticket that says this.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(&self, claims: &Claims) -> Result<String, String> {
        let body = serde_json::to_vec(claims).map_err(|error| error.to_string())?;
        let signature = self.0.sign(&[DOMAIN, &body].concat());
        let signature = signature.map_err(|error| error.to_string())?;
        let [body, signature] = [body, signature].map(|part| BASE64URL_NOPAD.encode(&part));
        Ok(format!("{body}.{signature}"))
    }
}

impl Verifier {
    /// For the tickets of a host; `trust` is the file of the keys.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn new(trust: PathBuf, host: String) -> Result<Self, String> {
        read_keys(&trust)?;
        Ok(Self {
            trust,
            host,
            used: SharedMutex::default(),
        })
    }

    /// Accepts a ticket, once; `now` is in seconds since 1970.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn accept(&self, ticket: &str, now: u64) -> Result<Claims, TicketError> {
        let keys = read_keys(&self.trust).unwrap_or_else(|fault| {
            tracing::error!("no ticket is accepted: {fault}");
            Vec::new()
        });
        let claims = open(&keys, ticket)?;
        if claims.host != self.host {
            return Err(TicketError::OtherHost);
        }
        if claims.until < now || claims.until > now + VALID + SKEW {
            return Err(TicketError::Expired);
        }
        let mut used = self.used.lock();
        if used.len() >= MAX_USED {
            used.retain(|_, until| *until >= now);
        }
        if used.len() >= MAX_USED {
            return Err(TicketError::TooMany);
        }
        match used.insert(claims.nonce.clone(), claims.until) {
            Some(_) => Err(TicketError::Used),
            None => Ok(claims),
        }
    }
}

/// What a ticket says that one of the keys has signed.
fn open(keys: &[KeyPair], ticket: &str) -> Result<Claims, TicketError> {
    let parts = ticket
        .split_once('.')
        .filter(|_| ticket.len() <= MAX_TICKET);
    let decode = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes());
    let (body, signature) = parts.ok_or(TicketError::Malformed)?;
    let (Ok(body), Ok(signature)) = (decode(body), decode(signature)) else {
        return Err(TicketError::Malformed);
    };
    let signed = [DOMAIN, &body].concat();
    let mut keys = keys.iter();
    let signer = keys.find(|key| key.verify(&signed, &signature).is_ok());
    let signer = signer.ok_or(TicketError::Untrusted)?;
    let claims: Claims = serde_json::from_slice(&body).map_err(|_| TicketError::Malformed)?;
    Ok(Claims {
        signer: signer.public_key(),
        ..claims
    })
}

fn read_keys(path: &Path) -> Result<Vec<KeyPair>, String> {
    let shown = path.display();
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| format!("{shown} cannot be read ({error})"))?;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| {
            KeyPair::from_public_key(line).map_err(|error| {
                format!(
                    "{shown}: {line:?} is no public key ({error}); acp-relay cluster key shows it"
                )
            })
        })
        .collect()
}
