//! Opens the pages of an agent, and waits for the redirect that a login ends with.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use super::browser;
use super::redirect::Doors;
use policy::{LoginPage, LoginRedirect};
use rustix::process::{WaitOptions, wait};
use tokio::time::timeout;
use transport::process::start_outliving;
use transport::{LoginEnd, OpenPage};

/// The first argument of a process that opens a page, whose address is on its stdin.
pub const SUBCOMMAND: &str = "__open-page";
/// How long a login may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Opens the pages of the agent that is called `agent`; after a question in the browser if `asks`.
#[must_use]
pub fn here(agent: &str, asks: bool) -> LoginEnd {
    let agent: Arc<str> = agent.into();
    let name = Arc::clone(&agent);
    let open: OpenPage = Arc::new(move |address| {
        let agent = Arc::clone(&name);
        Box::pin(async move { told(&agent, open(&agent, &address, asks).await) })
    });
    let wait: OpenPage = Arc::new(move |address| {
        let agent = Arc::clone(&agent);
        Box::pin(async move {
            let page = LoginPage::read(&address)?;
            tracing::warn!(
                "{agent} logs in at {}: the end of its page is awaited",
                page.host
            );
            told(&agent, redirected(page.redirect.as_ref(), || Ok(())).await)
        })
    });
    LoginEnd::Client { open, wait }
}

/// Opens the page whose address is on stdin, and lives as long as the browser: a relay ends processes
/// that have lost their parents.
///
/// # Errors
/// It cannot be read, or no browser can be started.
pub fn run() -> io::Result<()> {
    let mut address = String::new();
    io::stdin().lock().read_to_string(&mut address)?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    browser::start(&address)
        .map(drop)
        .map_err(io::Error::other)?;
    while wait(WaitOptions::empty()).is_ok() {}
    Ok(())
}

fn told<T>(agent: &str, result: Result<T, String>) -> Result<T, String> {
    result.inspect_err(|why| tracing::warn!("the login of {agent} is not completed here: {why}"))
}

async fn open(agent: &str, address: &str, asks: bool) -> Result<Option<String>, String> {
    let page = LoginPage::read(address)?;
    tracing::warn!(
        "{agent} logs in at {}: its page opens in the browser here",
        page.host
    );
    if !asks {
        return redirected(page.redirect.as_ref(), || start(address)).await;
    }
    let doors = Doors::open(None)?;
    let (question, consented) = doors.question(agent, &page.host, address);
    start(&question)?;
    let consented = async {
        let within = timeout(PATIENCE, consented).await;
        within.map_err(|_| "nobody has agreed in time".to_owned())
    };
    let Some(to) = &page.redirect else {
        return consented.await.map(|()| None);
    };
    // The port is open before the page is.
    let (_, target) = tokio::try_join!(consented, redirected(Some(to), || Ok(())))?;
    Ok(target)
}

/// Waits for the redirect, after `open`.
async fn redirected(
    to: Option<&LoginRedirect>,
    open: impl FnOnce() -> Result<(), String>,
) -> Result<Option<String>, String> {
    let Some(to) = to else {
        open()?;
        return Ok(None);
    };
    let doors = Doors::open(Some(to))?;
    open()?;
    let target = timeout(PATIENCE, doors.redirect(to)).await;
    let target = target.map_err(|_| "the browser was not redirected in time".to_owned())?;
    tracing::warn!("the login is passed on to the agent");
    Ok(Some(target))
}

/// Starts a process that opens the page: what this one starts itself counts as an agent's.
fn start(address: &str) -> Result<(), String> {
    browser::check()?;
    let begun = || -> io::Result<()> {
        let (input, mut output) = io::pipe()?;
        start_outliving(SUBCOMMAND, input.into())?;
        output.write_all(address.as_bytes())
    };
    begun().map_err(|fault| format!("no browser can be started ({fault})"))
}
