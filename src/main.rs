//! Placeholder.

use std::process::ExitCode;

use acp_relay::transport::process::keeper;

fn main() -> ExitCode {
    // Before the command line is read and before there is a runtime.
    if std::env::args_os().nth(1).as_deref() == Some(keeper::WORD.as_ref()) {
        return match keeper::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    ExitCode::SUCCESS
}
