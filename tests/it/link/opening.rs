//! A link whose first connection is lost while it opens.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};

use crate::support::agent::scripted;
use crate::support::link::run;
use crate::support::program::{Program, answered};

#[test]
fn a_first_connection_that_is_lost_while_the_link_opens_is_tried_again() {
    // In the answer to the upgrade, and so many bytes behind it.
    let cuts = [(false, 1), (false, 100), (true, 0), (true, 44)];
    run(async {
        for cut in cuts {
            let own = ["serve", "--listen", "ws://127.0.0.1:0"];
            // The client names another port.
            let other = ["--allow-host", "127.0.0.1", "--"];
            let words = own.into_iter().chain(other).map(str::to_owned);
            let words: Vec<_> = words.chain(scripted(&[])).collect();
            let mut server = Program::start(&words);
            let address = server.address().await;
            let port = address.rsplit(':').next().unwrap().split('/').next();
            let port: u16 = port.unwrap().parse().unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let first = listener.local_addr().unwrap().port();
            let connections = async {
                let (client, _) = listener.accept().await.unwrap();
                pass(client, port, Some(cut)).await;
                let (client, _) = listener.accept().await.unwrap();
                pass(client, port, None).await;
            };
            let mut client = Program::start(&["connect", &format!("ws://127.0.0.1:{first}/acp")]);
            tokio::select! {
                () = connections => panic!("{cut:?}: the second connection has ended"),
                _ = answered(&mut client, 0, "initialize", json!({"protocolVersion": 1})) => {}
            }
        }
    });
}

/// Passes bytes both ways, and resets the client after so many from the server, counted from the end
/// of the head of its answer or from the beginning.
async fn pass(mut client: TcpStream, port: u16, cut: Option<(bool, u64)>) {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let down = async {
        let (is_behind, most) = cut.unwrap_or((false, u64::MAX));
        let mut head = Vec::new();
        while is_behind && !head.ends_with(b"\r\n\r\n") {
            head.push(from_server.read_u8().await.unwrap());
        }
        to_client.write_all(&head).await.unwrap();
        copy(&mut from_server.take(most), &mut to_client).await
    };
    tokio::select! {
        _ = copy(&mut from_client, &mut to_server) => {}
        _ = down => {}
    }
    client.set_zero_linger().unwrap();
}
