// A recording behind the viewer's server: windows of it are asked for, and news is waited for.
// A source has `state(after)`, `rows(query)`, `turns(from)`, `findings(id, from,
// count)`, `event(i)`, `rule(id)`.

class Server {
  live = true;

  constructor(place, name) {
    this.name = name;
    this.base = `api/${place}/`;
    this.gone = new AbortController();
  }

  static async recordings() {
    return await (await ask("api/recordings")).json();
  }

  async state(after) {
    const known = after === undefined ? "" : `?after=${after}`;
    return await (await ask(this.base + "state" + known, { signal: this.gone.signal })).json();
  }

  async rows(query) {
    const filled = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
    const asked = new URLSearchParams(filled);
    const rows = await (await ask(`${this.base}rows?${asked}`, { signal: this.gone.signal })).json();
    return rows;
  }

  async turns(from) {
    return await (await ask(`${this.base}turns?from=${from}`)).json();
  }

  /** What the linter has found: of a rule, so many from one on. */
  async findings(id, from, count) {
    return await (await ask(`${this.base}findings?${new URLSearchParams({ id, from, count })}`)).json();
  }

  /** The line of an event; of a long one its beginning, unless it is asked for in full. */
  async event(i, whole) {
    const headers = whole ? {} : { range: `bytes=0-${(512 << 10) - 1}` };
    const answer = await ask(`${this.base}event?i=${i}`, { headers });
    const place = answer.headers.get("content-range");
    const length = place ? Number(place.split("/")[1]) : undefined;
    const line = await answer.text();
    return { line, whole: length === undefined || length <= 512 << 10, length: length ?? line.length };
  }

  async rule(id) {
    return await (await ask(`api/rule?id=${encodeURIComponent(id)}`)).json();
  }

  close() {
    this.gone.abort();
  }
}

async function ask(address, options) {
  const answer = await fetch(address, options);
  if (!answer.ok) throw Object.assign(new Error(await answer.text()), { status: answer.status });
  return answer;
}
