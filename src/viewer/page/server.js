// A recording on the viewer's server: the page requests windows of it and waits for changes.
// A source has `state(after)`, `rows(query)`, `turns(from)`, `findings(id, from,
// count)`, `event(i)`, `rule(id)`.

class Server {
  live = true;

  constructor(place, name) {
    Object.assign(this, { name, place });
    this.base = `api/${place}/`;
    this.closing = new AbortController();
  }

  /** The rows of the overview that have changed after a revision; with `wait`, once there are some. */
  static async recordings(after, wait) {
    return await (await request(`api/recordings?${wait ? "" : "now&"}after=${after}`)).json();
  }

  /** Sends dropped files to the server, which keeps them until it ends. Returns the places of their recordings. */
  static async send(files) {
    const lengths = new URLSearchParams(files.map((file) => [file.name, file.size]));
    return await (await request(`api/dropped?${lengths}`, { method: "POST", body: new Blob(files) })).json();
  }

  async state(after) {
    const known = after === undefined ? "" : `?after=${after}`;
    return await (await request(this.base + "state" + known, { signal: this.closing.signal })).json();
  }

  async rows(query) {
    const filled = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
    const parameters = new URLSearchParams(filled);
    const rows = await (await request(`${this.base}rows?${parameters}`, { signal: this.closing.signal })).json();
    return rows;
  }

  async turns(from) {
    return await (await request(`${this.base}turns?from=${from}`)).json();
  }

  /** Durations of the whole recording. */
  async figures() {
    return await (await request(`${this.base}figures`)).json();
  }

  /** The findings of a rule: `count` from the one at `from`. */
  async findings(id, from, count) {
    return await (await request(`${this.base}findings?${new URLSearchParams({ id, from, count })}`)).json();
  }

  /** The line of an event; of a long one its beginning, unless `whole` is set. */
  async event(i, whole) {
    const answer = await request(`${this.base}event?i=${i}${whole ? "" : `&most=${512 << 10}`}`);
    const length = Number(answer.headers.get("event-length"));
    return { line: await answer.text(), whole: whole || length <= 512 << 10, length };
  }

  async rule(id) {
    return await (await request(`api/rule?id=${encodeURIComponent(id)}`)).json();
  }

  async schema(version) {
    return await (await request(`api/schema?version=${version}`)).json();
  }

  close() {
    this.closing.abort();
  }
}

async function request(address, options) {
  const answer = await fetch(address, options);
  if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status });
  return answer;
}
