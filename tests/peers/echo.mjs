#!/usr/bin/env node
// An echo over the `ws` library, for `autobahn.py --prove`: `sound` follows RFC 6455, `spoilt`
// accepts invalid UTF-8 (sections 5.6 and 8.1), which the suite must report as FAILED.
//
//   echo.mjs WS_MODULE sound|spoilt server
//   echo.mjs WS_MODULE sound|spoilt client URL
import { pathToFileURL } from "node:url";

const [module, state, role, url] = process.argv.slice(2);
const { WebSocket, WebSocketServer } = await import(pathToFileURL(module));
const options = { skipUTF8Validation: state === "spoilt", perMessageDeflate: false, maxPayload: 64 << 20 };
const agent = "acp-relay";

/** One connection: echoes until it closes; returns the last message. */
const echo = (socket) =>
  new Promise((done) => {
    let last;
    socket.on("message", (data, binary) => socket.send((last = data), { binary }));
    socket.on("error", () => {}); // a protocol error of the peer: `close` follows
    socket.on("close", () => done(String(last)));
  });

if (role === "server") {
  const server = new WebSocketServer({ ...options, host: "127.0.0.1", port: 0 }, () =>
    console.log(`listening on ws://127.0.0.1:${server.address().port}/`));
  server.on("connection", echo);
} else {
  const ask = (path) => echo(new WebSocket(url + path, options));
  const count = Number(await ask("/getCaseCount"));
  for (let n = 1; n <= count; n++) await ask(`/runCase?case=${n}&agent=${agent}`);
  await ask(`/updateReports?agent=${agent}`);
}
