//! What another process gets to reach the server of a resumable link, and what it makes of that.

use hyper::header::{COOKIE, HeaderValue};

use super::resumable::Contact;
use super::{Endpoint, Links, Setup};

impl Contact {
    /// That of a server.
    pub(crate) fn of(to: &Endpoint, setup: &Setup) -> Self {
        let headers = setup.request_headers.headers.iter();
        let headers = headers.filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.to_string(), value.to_owned()))
        });
        let ca = setup.tls.ca.as_ref();
        Self {
            to: to.to_string(),
            headers: headers.collect(),
            tls_ca: ca.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            pin: setup.tls.pin.map(|pin| pin.to_string()),
        }
    }

    /// With these in place of the cookies that were configured.
    pub(crate) fn with_cookies(mut self, cookies: Option<HeaderValue>) -> Self {
        let cookies = cookies.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        if let Some(cookies) = cookies {
            self.headers.retain(|(name, _)| name != COOKIE.as_str());
            self.headers.push((COOKIE.to_string(), cookies));
        }
        self
    }

    /// The endpoint, and the settings to reach it with.
    ///
    /// # Errors
    /// It is not what [`Contact::of`] has made.
    pub(crate) fn read(self) -> Result<(Endpoint, Setup), String> {
        let to = self.to.parse().map_err(|error| format!("{error}"))?;
        let mut setup = Setup {
            links: Some(Links::default().into()),
            ..Setup::default()
        };
        setup.tls.ca = self.tls_ca;
        setup.tls.pin = self.pin.map(|pin| pin.parse()).transpose()?;
        for (name, value) in &self.headers {
            setup.request_headers.add(&format!("{name}: {value}"))?;
        }
        Ok((to, setup))
    }
}
