//! Any text is an endpoint or an error; an endpoint spells itself as one that is the same.

#![no_main]

use acp_relay::transport::Endpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(endpoint) = text.parse::<Endpoint>() {
        let spelled = endpoint.to_string();
        let again = spelled.parse::<Endpoint>().expect("it was one");
        assert_eq!(again, endpoint, "{spelled}");
    }
});
