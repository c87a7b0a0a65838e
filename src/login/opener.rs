//! Opens the pages of an agent, and waits for the redirect that a login ends with.

use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use super::browser;
use super::redirect::Doors;
use policy::LoginPage;
use rustix::process::{WaitOptions, wait};
use tokio::time::timeout;
use transport::process::start_outliving;
use transport::{LoginEnd, OpenPage};

/// The first argument of a process that opens a page, whose address is on its stdin.
pub const SUBCOMMAND: &str = "__open-page";
/// How long a login may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How a page comes to be open.
#[derive(Clone, Copy)]
enum Opening {
    /// It is opened at once.
    AtOnce,
    /// After a question in the browser.
    Asked,
    /// The client opens it.
    ByClient,
}

/// Opens the pages of the agent that is called `agent`; after a question in the browser if `asks`.
#[must_use]
pub fn here(agent: &str, asks: bool) -> LoginEnd {
    let agent: Arc<str> = agent.into();
    let opener = |how| -> OpenPage {
        let agent = Arc::clone(&agent);
        Arc::new(move |address| {
            let agent = Arc::clone(&agent);
            Box::pin(async move {
                let done = log_in(&agent, &address, how).await;
                done.inspect_err(|why| tracing::warn!("the login of {agent} fails here: {why}"))
            })
        })
    };
    let usual = if asks {
        Opening::Asked
    } else {
        Opening::AtOnce
    };
    LoginEnd::Client {
        open: opener(usual),
        wait: opener(Opening::ByClient),
    }
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

/// Opens a page, and waits for the redirect, if there is to be one.
async fn log_in(agent: &str, address: &str, how: Opening) -> Result<Option<String>, String> {
    let page = LoginPage::read(address)?;
    let to = page.redirect.as_ref();
    // Before the page is open.
    let doors = to.map(|to| Doors::open(Some(to))).transpose()?;
    tracing::warn!("{agent} logs in at {}, in the browser here", page.host);
    match how {
        Opening::AtOnce => start(address)?,
        Opening::Asked => {
            let (question, consented) = Doors::open(None)?.question(agent, &page.host, address);
            start(&question)?;
            let consented = timeout(PATIENCE, consented).await;
            consented.map_err(|_| "the question was not answered in time".to_owned())?;
        }
        Opening::ByClient => {}
    }
    let Some((doors, to)) = doors.zip(to) else {
        return Ok(None);
    };
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
