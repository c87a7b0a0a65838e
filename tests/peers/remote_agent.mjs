// remote_agent.mjs SDK [TLS]: the official TypeScript SDK's HTTP and WebSocket server, of the package at
// SDK, over TLS when a directory TLS with cert.pem and key.pem is given, with an agent that behaves like
// turner.py. Prints `listening PORT`, and `asked METHOD HTTP/VERSION` or `asked UPGRADE` for each request.
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { readFileSync } from "node:fs";
import path from "node:path";

const [, , root, tls] = process.argv;
const { exports } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
const load = (name) => import(pathToFileURL(path.join(root, exports[name].import)).href);
const acp = await load(".");
const { AcpServer } = await load("./experimental/server");
const { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } = await load("./experimental/node");
const { WebSocketServer } = createRequire(path.join(root, "package.json"))("ws");

const { client: toClient, agent: toAgent } = acp.methods;
const sessions = new Map();
const update = (cx, sessionId, text, kind = "agent_message_chunk") =>
    cx.notify(toClient.session.update, {
        sessionId,
        update: { sessionUpdate: kind, content: { type: "text", text } },
    });

async function turn({ sessionId, prompt }, cx) {
    const session = sessions.get(sessionId);
    const text = prompt.map((block) => block.text ?? "").join("");
    session.prompts.push(text);
    await update(cx, sessionId, `begun: ${text}`);
    if (text.includes("wait")) {
        await new Promise((resolve) => (session.cancel = resolve));
        return { stopReason: "cancelled" };
    }
    const read = await cx.request(toClient.fs.readTextFile, { sessionId, path: "/seed.txt" });
    const choice = await cx.request(toClient.session.requestPermission, {
        sessionId,
        toolCall: { toolCallId: "t1", title: "write" },
        options: [
            { optionId: "yes", name: "Yes", kind: "allow_once" },
            { optionId: "no", name: "No", kind: "reject_once" },
        ],
    });
    if (choice.outcome.optionId === "yes") {
        const content = read.content.toUpperCase();
        await cx.request(toClient.fs.writeTextFile, { sessionId, path: "/out.txt", content });
    }
    await update(cx, sessionId, `done: ${text}`);
    return { stopReason: "end_turn" };
}

const agent = acp
    .agent({ name: "remote_agent.mjs" })
    .onRequest(toAgent.initialize, () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true } }))
    .onRequest(toAgent.session.new, () => {
        const sessionId = crypto.randomUUID();
        sessions.set(sessionId, { prompts: [] });
        return { sessionId };
    })
    .onRequest(toAgent.session.load, async ({ params, client }) => {
        for (const text of sessions.get(params.sessionId).prompts) {
            await update(client, params.sessionId, text, "user_message_chunk");
        }
        return {};
    })
    .onRequest(toAgent.session.prompt, ({ params, client }) => turn(params, client))
    .onNotification(toAgent.session.cancel, ({ params }) => sessions.get(params.sessionId).cancel?.());

const server = new AcpServer({ agent });
const handler = createNodeHttpHandler(server);
const sockets = new WebSocketServer({ noServer: true, maxPayload: 16 << 20 });
const upgrade = createNodeWebSocketUpgradeHandler(server, sockets);
const pem = (name) => readFileSync(path.join(tls, name));
const create = tls
    ? (serve) => createTlsServer({ cert: pem("cert.pem"), key: pem("key.pem") }, serve)
    : createServer;
const http = create((request, response) => {
    console.log(`asked ${request.method} HTTP/${request.httpVersion}`);
    handler(request, response);
});
http.on("upgrade", (request, socket, head) => {
    console.log("asked UPGRADE");
    upgrade(request, socket, head);
});
http.listen(0, "127.0.0.1", () => console.log(`listening ${http.address().port}`));
