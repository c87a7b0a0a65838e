//! Logins of an agent in a browser that is on the client's machine.
//!
//! The relay at the client announces in `initialize` that it opens pages. While the client's
//! `authenticate` is open, the relay at the agent may ask it for one, by a request of its own, whose
//! answer has what the browser was redirected to; of the page of an elicitation, which the client opens
//! itself, it asks for the redirect. The client and the agent see nothing of that.

use std::time::Instant;

use serde_json::json;

use super::Outbox;
use super::login_state::{Awaited, LoginCall, LoginRole};
use super::state::Conversation;
use dialect::MessageBody;
use jsonrpc::reply::{self, Reason};
use jsonrpc::{Envelope, Frame, Kind, Scanned, Side, member, scan, text};
use policy::LoginPage;

/// The member of `initialize` with which the client's relay announces that it opens pages, and its
/// value. It is not passed on to the agent.
const PLACE: &str = "/_meta/acp-relay/login";
const WORD: &str = "browser";
/// The request for a page.
const METHOD: &str = "_acp-relay/login";
/// How the ids of such requests begin, which are JSON strings.
const ID: &str = "\"acp-relay-login:";
/// The requests of the client during which a page may be opened, of v1 and v2, and that of the agent
/// which sends the client to a page.
const AUTHENTICATE: [&[u8]; 2] = [b"authenticate", b"auth/login"];
const ELICIT: &[u8] = b"elicitation/create";
/// Most pages of one login.
const MAX_PAGES: u32 = 5;

impl Conversation {
    /// Sets what the relay does for logins of the agent.
    #[must_use]
    pub fn with_login(mut self, role: Option<LoginRole>) -> Self {
        self.login.role = role;
        self
    }

    /// At the agent: asks the client's relay for a page, which a process of the agent opens.
    ///
    /// # Errors
    /// Why it is not asked.
    pub fn ask_for_page(
        &mut self,
        address: &str,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<(), String> {
        self.now = now;
        if !self.logs_in() {
            return Err("no login of the client is open".to_owned());
        }
        let page = LoginPage::read(address)?;
        match self.request_page(address, &page, false, out) {
            true => Ok(()),
            false => Err("the client's relay opens no pages, or has one open".to_owned()),
        }
    }

    /// At the agent: whether a page of it may be asked for.
    pub fn takes_pages(&mut self) -> bool {
        if self.login.may_be_open && !self.logs_in() {
            self.login.may_be_open = false;
            // The redirect of a page that the client opens comes after its answer.
            self.login.awaited.take_if(|awaited| !awaited.is_shown);
        }
        self.login.may_be_open
    }

    /// At the agent: what the browser was redirected to, and the port that it is for; or why there is
    /// nothing.
    pub fn take_delivery(&mut self) -> Option<Result<(u16, String), String>> {
        self.login.delivery.take()
    }

    /// At the client: the page to open, once.
    pub fn take_page(&mut self) -> Option<LoginCall> {
        self.login.page.take()
    }

    /// At the client: whether the result of the page is still awaited.
    #[must_use]
    pub fn awaits_page(&self) -> bool {
        let asked = self.login.asked.as_ref();
        asked.is_some_and(|(_, is_shown)| *is_shown || self.logs_in())
    }

    /// At the client: what the page's login redirected the browser to, if it did, or why not.
    pub fn handle_page(
        &mut self,
        result: Result<Option<String>, String>,
        now: Instant,
        out: &mut Outbox,
    ) {
        self.now = now;
        let Some((id, _)) = self.login.asked.take() else {
            return;
        };
        let answer = match result {
            // It is redacted in recordings for its name.
            Ok(target) => {
                let body = json!({ "secret": target }).to_string();
                reply::answer(id.as_id(), "result", body.as_bytes())
            }
            Err(why) => reply::error(id.as_id(), &Reason::new(reply::POLICY_DENIED, why)),
        };
        self.send(Side::Agent, answer, None, out);
    }

    /// Takes a request where the relay has a part in logins.
    #[cold]
    pub(super) fn request_beside_logins(
        &mut self,
        from: Side,
        frame: Frame,
        at: &Envelope,
        out: &mut Outbox,
    ) {
        if from == Side::Agent && self.take_page_request(&frame, at, out) {
            return;
        }
        let is_first = from == Side::Client && at.has_method(&frame, "initialize");
        if is_first
            && let Some(announced) = self.announce_login(&frame, at)
            && let Scanned::Message(at) = scan(&announced, &self.limits)
        {
            return self.pass_request(from, announced, &at, out);
        }
        if from == Side::Client && AUTHENTICATE.contains(&at.raw_method(&frame)) {
            (self.login.may_be_open, self.login.pages) = (true, 0);
        }
        let elicitation =
            (from == Side::Agent && at.raw_method(&frame) == ELICIT).then(|| frame.clone());
        self.pass_request(from, frame, at, out);
        if let Some(elicitation) = elicitation {
            self.follow_elicitation(&elicitation, at, out);
        }
    }

    /// The client's `initialize`, as it passes: announced, or taken back.
    pub(super) fn announce_login(&mut self, frame: &Frame, at: &Envelope) -> Option<Frame> {
        let mut body = MessageBody::of(frame, at);
        match self.login.role? {
            LoginRole::Client => body.put_text(PLACE, WORD),
            LoginRole::Agent => {
                self.login.is_announced = body.take_text(PLACE, WORD);
                if !self.login.is_announced {
                    return None;
                }
            }
        }
        Some(body.into_frame(frame, at))
    }

    /// Takes a request of the agent's relay for a page.
    fn take_page_request(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) -> bool {
        if self.login.role != Some(LoginRole::Client) || !at.has_method(frame, METHOD) {
            return false;
        }
        let params = at.body(frame).unwrap_or_default();
        let address = member(params, "secret").and_then(text::string);
        let is_shown = member(params, "isShown") == Some(b"true");
        let open = self.login.asked.as_ref().map(|(_, is_shown)| *is_shown);
        let refused = match address {
            None => "it names no page",
            Some(address) if is_shown && self.login.shown.as_deref() != Some(&*address) => {
                "the client was not sent to that page"
            }
            Some(_) if !is_shown && !self.logs_in() => "no login of the client is open",
            Some(_) if open == Some(false) => "another page is open",
            Some(_) if !is_shown && self.login.pages >= MAX_PAGES => {
                "the login has opened too many pages"
            }
            Some(address) => {
                let address = address.into_owned();
                let replaced = "another page has taken its place".to_owned();
                self.handle_page(Err(replaced), self.now, out);
                self.login.pages += u32::from(!is_shown);
                self.login.asked = Some((at.id(frame).to_owned(), is_shown));
                self.login.page = Some(LoginCall { address, is_shown });
                return true;
            }
        };
        let reason = Reason::new(reply::POLICY_DENIED, refused);
        self.send(Side::Agent, reply::error(at.id(frame), &reason), None, out);
        true
    }

    /// Takes the answer of the client's relay to the request for a page.
    pub(super) fn take_page_answer(&mut self, frame: &Frame, at: &Envelope) -> bool {
        let id = at.id(frame);
        let id = id.json();
        if self.login.role != Some(LoginRole::Agent) || !id.starts_with(ID.as_bytes()) {
            return false;
        }
        let Some(awaited) = self
            .login
            .awaited
            .take_if(|awaited| awaited.id.as_bytes() == id)
        else {
            // Of a login that is over.
            return true;
        };
        let body = at.body(frame).unwrap_or_default();
        match at.kind {
            Kind::Result => {
                let target = member(body, "secret").and_then(text::string);
                let both = awaited.redirect.zip(target);
                self.login.delivery =
                    both.map(|(redirect, target)| match redirect.check(&target) {
                        Ok(()) => Ok((redirect.port, target.into_owned())),
                        Err(why) => Err(format!("what has come is not its redirect: {why}")),
                    });
            }
            _ => {
                let why = member(body, "message")
                    .and_then(text::string)
                    .unwrap_or_default();
                self.login.delivery = Some(Err(jsonrpc::printable(why.as_bytes())));
            }
        }
        true
    }

    /// An elicitation has passed: if it sends the client to a page, the redirect is awaited.
    fn follow_elicitation(&mut self, frame: &Frame, at: &Envelope, out: &mut Outbox) {
        let address = member(at.body(frame).unwrap_or_default(), "url").and_then(text::string);
        if self.login.role == Some(LoginRole::Client) {
            self.login.shown = address.map(|address| address.into_owned());
            return;
        }
        // A page without a redirect to the agent is the client's alone.
        if let Some(address) = address
            && let Ok(page) = LoginPage::read(&address)
            && page.redirect.is_some()
        {
            self.request_page(&address, &page, true, out);
        }
    }

    fn request_page(
        &mut self,
        address: &str,
        page: &LoginPage,
        is_shown: bool,
        out: &mut Outbox,
    ) -> bool {
        let awaited = self.login.awaited.as_ref();
        if !self.login.is_announced || awaited.is_some_and(|awaited| !awaited.is_shown) {
            return false;
        }
        self.login.requests += 1;
        let id = format!("{ID}{}\"", self.login.requests);
        let params = json!({ "host": page.host, "secret": address, "isShown": is_shown });
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{METHOD}","params":{params}}}"#);
        self.login.awaited = Some(Awaited {
            id,
            redirect: page.redirect.clone(),
            is_shown,
        });
        self.send(Side::Client, Frame::new(request.into_bytes()), None, out);
        true
    }

    /// Whether the client logs in.
    fn logs_in(&self) -> bool {
        let mut open = self.pending[Side::Client as usize].iter();
        open.any(|(_, open)| AUTHENTICATE.contains(&&*open.method))
    }
}
