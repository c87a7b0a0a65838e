//! Query parameters of a URL: `?limit=10&before=…`.

use crate::agent_connect::api_error::ApiError;

/// The parameters of a request.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn read(query: Option<&str>) -> Self {
        let pairs = query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        };
        Self(pairs.map(pair).collect())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(one, _)| one == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        self.read_as(name, "a whole number, 0 or more")
    }

    /// A number of seconds.
    pub(super) fn seconds(&self, name: &str) -> Result<Option<f64>, ApiError> {
        let wanted = "a number of seconds, 0 or more";
        match self.read_as::<f64>(name, wanted)? {
            Some(given) if !given.is_finite() || given < 0.0 => {
                Err(ApiError::wrong_type(name, wanted))
            }
            given => Ok(given),
        }
    }

    pub(super) fn boolean(&self, name: &str) -> Result<bool, ApiError> {
        Ok(self.read_as(name, "true or false")?.unwrap_or(false))
    }

    fn read_as<T: std::str::FromStr>(
        &self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<T>, ApiError> {
        let read = self
            .text(name)
            .map(|text| text.parse().map_err(|_| ApiError::wrong_type(name, wanted)));
        read.transpose()
    }
}

/// Decodes percent-encoding (RFC 3986, 2.1) and plus signs, which are spaces.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let coded = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, coded) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_percent_decoded() {
        let query = Query::read(Some("limit=10&before=a%2Fb+c%zz&wait=true&limit=11&odd"));
        assert_eq!(query.number("limit"), Ok(Some(10)));
        assert_eq!(query.text("before"), Some("a/b c%zz"));
        assert_eq!(query.boolean("wait"), Ok(true));
        assert_eq!(query.text("odd"), Some(""));
        assert!(query.number("before").is_err());
        assert!(
            Query::read(Some("block_timeout=-1"))
                .seconds("block_timeout")
                .is_err()
        );
    }
}
