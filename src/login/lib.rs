//! Logins of agents on other machines, in a browser on this one.
//!
//! An agent that logs in opens a page and waits at a port of its own machine for the redirect that the
//! page ends with. Here the page is opened, and one redirect is awaited at the same port of this
//! machine; its path and query go back to the agent, and nothing else of what the browser sends.
//! `policy::LoginPage` is which pages and which redirects are accepted.
//!
//! `opener` opens pages, [`browser`] starts a browser, `redirect` waits for requests and answers them with pages of ours.

pub mod browser;
mod opener;
mod redirect;

pub use opener::{SUBCOMMAND, here, run};
