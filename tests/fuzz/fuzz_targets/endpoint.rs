//! Any text is an endpoint or an error; a printed endpoint is parsed as the same one.

#![no_main]

use acp_relay::transport::Endpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(endpoint) = text.parse::<Endpoint>() {
        let printed = endpoint.to_string();
        let again = printed.parse::<Endpoint>().expect("it was one");
        assert_eq!(again, endpoint, "{printed}");
    }
});
