//! Joins the conversation's part in logins to what opens pages, or to the agent that opens them.

use std::task::{Context, Poll};

use tokio::time::Instant;

use conversation::{Conversation, LoginRole, Outbox};
use transport::{BoxFuture, LoginEnd};

/// The logins of a conversation's agent.
pub(super) struct Logins {
    end: Option<LoginEnd>,
    /// At the client: the page that is open.
    page: Option<BoxFuture<'static, Result<Option<String>, String>>>,
}

impl Logins {
    pub(super) const fn new(end: Option<LoginEnd>) -> Self {
        Self { end, page: None }
    }

    /// The agent was started again.
    pub(super) fn replace(&mut self, end: Option<LoginEnd>) {
        if matches!(self.end, Some(LoginEnd::Agent(_))) {
            self.end = end;
        }
    }

    pub(super) fn role(&self) -> Option<LoginRole> {
        Some(match self.end.as_ref()? {
            LoginEnd::Agent(_) => LoginRole::Agent,
            LoginEnd::Client { .. } => LoginRole::Client,
        })
    }

    /// Passes on what has happened; whether anything has.
    pub(super) fn poll(
        &mut self,
        conversation: &mut Conversation,
        out: &mut Outbox,
        cx: &mut Context<'_>,
    ) -> bool {
        let now = || Instant::now().into_std();
        match &mut self.end {
            None => false,
            Some(LoginEnd::Agent(browser)) => {
                match conversation.take_delivery() {
                    Some(Ok((port, target))) => browser.deliver(port, target),
                    Some(Err(why)) => {
                        tracing::warn!("a login of the agent was not completed: {why}");
                    }
                    None => {}
                }
                let Poll::Ready(Some(call)) = browser.poll_call(conversation.takes_pages(), cx)
                else {
                    return false;
                };
                let asked = conversation.ask_for_page(&call.address, now(), out);
                if let Err(why) = &asked {
                    tracing::info!("a page of the agent is not opened elsewhere: {why}");
                }
                call.answer(asked.is_ok());
                true
            }
            Some(LoginEnd::Client { open, wait }) => {
                if let Some(call) = conversation.take_page() {
                    let how = if call.is_shown { wait } else { open };
                    self.page = Some(how(call.address));
                }
                let Some(page) = &mut self.page else {
                    return false;
                };
                let result = match page.as_mut().poll(cx) {
                    Poll::Ready(result) => result,
                    Poll::Pending if conversation.awaits_page() => return false,
                    Poll::Pending => Err("the client's login is over".to_owned()),
                };
                self.page = None;
                conversation.handle_page(result, now(), out);
                true
            }
        }
    }
}
