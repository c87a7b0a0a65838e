//! Translates a message of the dialect `elephant` into canonical ACP.

#![expect(clippy::print_stdout, reason = "it shows the result")]

use dialect::{Library, Translator};
use jsonrpc::{Frame, Limits, Scanned, Side, scan};

fn main() {
    let program = Library::builtin()
        .program("elephant")
        .expect("it is built in");
    let mut agent = Translator::new(Side::Agent, program);
    let frame = Frame::from(
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"1","title":"Send","kind":"channel"}}}"#,
    );
    let Scanned::Message(at) = scan(&frame, &Limits::default()) else {
        panic!("it is no message");
    };
    for canonical in agent.read(&frame, &at).frames(&frame) {
        println!("{}", String::from_utf8_lossy(canonical.as_bytes()));
    }
}
