// What ACP's schema says of the members of a message, shown at their names; and which members are
// extensions. The schema comes from the server when the first message is shown.

/** Maximum nesting, and characters of a message, that are compared with the schema. */
const DEEPEST_TYPE = 40;
const LONGEST_DESCRIBED = 1 << 20;

const UNKNOWN = "An extension: not in the schema of ACP";
const ENVELOPE = {
  jsonrpc: "The version of JSON-RPC: 2.0", id: "The request's id, which its answer repeats", method: "The method's name",
  params: "The method's parameters", result: "The method's result", error: "Why the request failed",
};

/** The schemas by version, from the first use on. */
const schemas = new Map();

/** The schema of a version; null where no server has it. */
function schemaOf(source, version) {
  if (!source.schema) return null;
  if (!schemas.has(version)) schemas.set(version, source.schema(version).catch(() => schemas.delete(version) && null));
  return schemas.get(version);
}

/** What is known of the members of a message, by JSON Pointer: their description, and whether they are extensions. */
function describe(schema, method, text) {
  const known = new Map();
  if (!schema || text.length > LONGEST_DESCRIBED) return known;
  const [params, result] = Object.hasOwn(schema.methods, method) ? schema.methods[method] : [];
  const types = { params, result, error: "Error" };
  const walk = (value, name, path, depth) => {
    if (depth > DEEPEST_TYPE || value === null || typeof value !== "object") return;
    if (Array.isArray(value)) return value.forEach((one, at) => walk(one, name, `${path}/${at}`, depth + 1));
    const members = membersOf(schema.types, name, value);
    for (const [member, inner] of Object.entries(value)) {
      const place = `${path}/${member.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      const [about, type] = members.get(member) ?? [];
      const extension = member === "_meta" || (about === undefined && !members.unsure);
      if (about || extension) known.set(place, { about: about || UNKNOWN, extension });
      if (type && member !== "_meta") walk(inner, type, place, depth + 1);
    }
  };
  let tree;
  try {
    tree = object(JSON.parse(text));
  } catch {
    return known;
  }
  for (const [member, value] of Object.entries(tree)) {
    const own = Object.hasOwn(ENVELOPE, member);
    const type = own && types[member];
    known.set(`/${member}`, { about: (type && schema.types[type].about) || (own ? ENVELOPE[member] : UNKNOWN), extension: !own });
    if (type) walk(value, type, `/${member}`, 0);
  }
  return known;
}

/** The members of a type, with those of the variant that the value is of; `unsure` when there is no such variant. */
function membersOf(types, name, value, made = new Map()) {
  const { members, tag, variants = {}, others = [] } = types[name];
  for (const [member, known] of Object.entries(members)) made.set(member, known);
  const variant = tag && Object.hasOwn(variants, value[tag]) ? variants[value[tag]] : null;
  if (variant?.[1]) membersOf(types, variant[1], value, made);
  if (variant) made.set(tag, [variant[0] || made.get(tag)?.[0] || "", null]);
  else for (const other of others) membersOf(types, other, value, made);
  made.unsure ||= Boolean(tag && !variant && !others.length);
  return made;
}

/** Shows the description of the member under the pointer, or of the one with the focus, which arrows move. */
class Descriptions {
  constructor(box) {
    this.tip = el("div", "");
    Object.assign(this.tip, { id: "tip", role: "tooltip", hidden: true });
    document.body.append(this.tip);
    const keyOf = (event) => event.target.closest?.("[data-about]");
    for (const name of ["pointerover", "focusin"]) box.addEventListener(name, (event) => this.show(keyOf(event)));
    for (const name of ["pointerleave", "focusout"]) box.addEventListener(name, () => this.show(null));
    box.addEventListener("scroll", () => this.show(null), { passive: true });
    box.addEventListener("keydown", (event) => {
      const key = keyOf(event);
      const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (!key || !by) return;
      event.preventDefault();
      const all = [...key.closest(".json").querySelectorAll("[data-about]")].filter((one) => one.checkVisibility());
      const next = all[all.indexOf(key) + by];
      if (!next) return;
      [key.tabIndex, next.tabIndex] = [-1, 0];
      next.focus();
    });
  }

  show(key) {
    this.tip.hidden = !key;
    if (!key) return;
    this.tip.replaceChildren(...shown(key.dataset.about, false));
    key.setAttribute("aria-describedby", "tip");
    const { left, top, bottom } = key.getBoundingClientRect();
    const { offsetWidth: wide, offsetHeight: tall } = this.tip;
    this.tip.style.left = `${Math.max(6, Math.min(left, innerWidth - wide - 6))}px`;
    this.tip.style.top = `${bottom + tall + 6 < innerHeight ? bottom + 4 : top - tall - 4}px`;
  }
}
