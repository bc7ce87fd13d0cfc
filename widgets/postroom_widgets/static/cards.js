// The cards of an inbox: what happened, on whose behalf, and what can be said to it, in place.

import { argument, readEdits, WHY_NOT } from "./asking.js";
import { chip, clock, h, icon, money, plural } from "./kit.js";
import { opens } from "./opened.js";

const FACES = { approval: "shield", failed: "warn", budget: "gauge", notice: "bell" };
const ALWAYS = {
  args: "These arguments, this session",
  tool: "This tool, this session",
  agent: "This tool, this agent",
};
const HOUR = 3600;

/** How long a question may still be answered: `Expires in 23 h`. */
export function expiresIn(iso, now = Date.now()) {
  const left = (Date.parse(iso) - now) / 1000;
  if (Number.isNaN(left)) return "";
  if (left <= 0) return "Expired";
  if (left < 60) return "Expires in less than a minute";
  if (left < HOUR) return `Expires in ${Math.floor(left / 60)} min`;
  if (left < 48 * HOUR) return `Expires in ${Math.floor(left / HOUR)} h`;
  return `Expires in ${Math.floor(left / (24 * HOUR))} days`;
}

/** From the owner to the call, as chips: you › lead › coder › call_0003. */
function pathOf(row) {
  const step = ([tone, name], at) => [
    at > 0 && icon("chev"),
    tone === "call" ? h("span.id", {}, name) : chip(tone, name),
  ];
  return row.path?.length ? h("div.path", { "aria-label": "on behalf of", role: "group" }, row.path.map(step)) : null;
}

/** What a card says, whatever can be done with it: also what a resolved line unfolds to. */
export function evidence(row) {
  const more = row.more ? `\n… ${plural(row.more, "more character")}` : "";
  return [
    pathOf(row),
    row.why && h("p.why.t", {}, row.why + more),
    row.used !== undefined && row.limit && meter(row),
    row.traceback && traceback(row.traceback.trim()),
    row.links?.length && h("div.row", {}, row.links.map(link)),
  ];
}

/** What a cap counts: an amount before its unit, and the unit; money says itself what it is. */
function amounts(knob = "") {
  if (knob.endsWith("cost")) return { number: (n) => money(n) || "$0", unit: "" };
  const unit = knob.endsWith("tokens") ? " tokens" : " requests";
  return { number: (n) => n.toLocaleString("en"), unit };
}

function meter({ used, limit, knob }) {
  const { number, unit } = amounts(knob);
  const share = Math.min(100, Math.round((100 * used) / limit));
  const fill = h("i");
  fill.style.width = `${share}%`;
  const range = { "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": share };
  const words = `${number(used)} of ${number(limit)}${unit}`;
  return h(
    "div.row.meta.spent",
    {},
    h("div.bar", { role: "progressbar", "aria-label": words, ...range }, fill),
    words,
  );
}

function traceback(text) {
  const words = `Traceback, ${plural(text.split("\n").length, "line")}`;
  return h(
    "details",
    {},
    h("summary.row.meta", { "data-part": "traceback" }, h("span.chev", {}, icon("chev")), words),
    h("pre", { tabindex: 0, "aria-label": "traceback" }, text),
  );
}

function link({ label, url }) {
  const safe = { href: url, target: "_blank", rel: "noopener noreferrer", title: url };
  return h("a.link", safe, label, icon("out"));
}

/** The arguments as they were asked for, where nothing can be edited. */
export function valuesOf(args) {
  const line = ([name, value]) =>
    h("div.arg", {}, h("code.mono", {}, name), h("span.v.t", {}, JSON.stringify(value)));
  return args && Object.keys(args).length ? h("div.args", {}, Object.entries(args).map(line)) : null;
}

const waits = (order) => Boolean(order && !order.words);

/** One card. `view` has `form(key)`, what was opened and typed there, and `answer(row, op, more)`. */
export function card(view, row, order) {
  const { closed, saved } = view;
  const title = [row.title, row.face === "approval" && [" ", h("code", {}, row.tool)]];
  const element = h(
    `article.card${row.fresh || saved ? "" : ".seen"}`,
    { "data-k": row.tone, tabindex: saved ? null : -1 },
    h(
      "div.top",
      {},
      icon(FACES[row.face]),
      h("h4", {}, title),
      row.fresh && !saved && h("span.new", { title: "new", role: "img", "aria-label": "new" }),
      h("span.meta.when", {}, h("span.id", {}, row.id), clock(row.at)),
    ),
    evidence(row),
  );
  element.setAttribute("aria-label", element.querySelector("h4").textContent);
  const asks = row.acts?.includes("answer");
  if (saved || (row.face === "approval" && !asks))
    element.append(...[valuesOf(row.args)].filter(Boolean));
  else if (asks) element.append(...decision(view, row, order));
  else element.append(remedies(view, row, order));
  if (order?.words) element.append(h("p.refusal", { role: "alert" }, order.words));
  if (closed)
    for (const control of element.querySelectorAll("button, input, textarea"))
      control.disabled = true;
  return element;
}

const press = (part, words, onclick, kind = "") =>
  h(`button.btn${kind}`, { type: "button", "data-part": part, onclick }, words);

/** Put `parts` in place of what is in `host`, and the focus on one of them. */
function turn(host, parts, focus) {
  host.replaceChildren(...parts);
  if (focus) host.querySelector(`[data-part="${focus}"]`)?.focus();
}

// ── A call that asks ──

function decision(view, row, order) {
  const form = view.form(row.key);
  const asked = row.args ?? {};
  const lines = Object.entries(asked).map(([name, value]) => {
    const line = argument(name, value, form.typed, () => look());
    line.querySelector("input, textarea").dataset.part = `arg:${name}`;
    return line;
  });
  const host = h("div.host");
  const edits = () => readEdits(asked, form.typed);
  const answer = (op, more) => view.answer(row, op, { approval: row.approval, ...more });
  const approve = (always) => {
    const found = edits();
    if (found.wrong.size) return;
    const some = Object.keys(found.edits).length > 0;
    answer("approve", { ...(some && { edits: found.edits }), ...(always && { always }) });
  };
  const open = (name, focus) => {
    form.open = name;
    draw(focus);
  };
  const shapes = {
    deny: () => refusing(row, form, answer, () => open(null, "deny")),
    always: () => standing(row, edits(), approve, () => open(null, "always")),
  };
  const draw = (focus) => {
    turn(host, [(shapes[form.open] ?? (() => answers(row, approve, open)))()], focus);
    look();
  };
  const look = () => {
    const { edits: found, wrong } = edits();
    for (const line of lines) line.update(line.name in found, wrong.has(line.name));
    const yes = host.querySelector('[data-part="approve"]');
    if (yes) yes.textContent = Object.keys(found).length ? "Approve as edited" : "Approve";
    const blocked = view.closed || waits(order);
    for (const control of host.querySelectorAll("button, input"))
      control.disabled = blocked || (wrong.size > 0 && "yes" in control.dataset);
    for (const line of lines) line.querySelector("input, textarea").disabled = blocked;
  };
  draw();
  return [...(lines.length ? [h("div.args", {}, lines)] : []), host];
}

function answers(row, approve, open) {
  const yes = press("approve", "Approve", () => approve(), ".solid");
  yes.dataset.yes = "";
  return h(
    "div.acts",
    {},
    yes,
    press("deny", "Deny…", () => open("deny", "reason")),
    row.always?.length && press("always", "Always allow…", () => open("always", "first")),
    h("span.grow"),
    row.expires && h("span.exp", { title: new Date(row.expires).toLocaleString() }, expiresIn(row.expires)),
  );
}

function refusing(row, form, answer, back) {
  const reason = h("input", { "aria-label": "reason", placeholder: WHY_NOT, "data-part": "reason" });
  reason.value = form.reason;
  reason.addEventListener("input", () => (form.reason = reason.value));
  const no = h("button.btn.tone", { type: "submit", "data-k": "bad", "data-part": "no" }, "Deny");
  const element = h("form.deny", {}, reason, no, press("back", "Back", back, ".bare"));
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!no.disabled) answer("deny", { reason: reason.value.trim() });
  });
  return element;
}

function standing(row, { edits }, approve, back) {
  const edited = Object.keys(edits).length > 0;
  const small = {
    args: `${row.tool} with exactly ${edited ? "the edited" : "these"} values`,
    tool: `${row.tool} with any values`,
    agent: `every session of ${row.agent}, until you revoke it`,
  };
  const option = (reach, at) => {
    const button = h(
      "button.reach",
      { type: "button", "data-part": at ? reach : "first", onclick: () => approve(reach) },
      ALWAYS[reach],
      h("small", {}, small[reach]),
    );
    button.dataset.yes = "";
    return button;
  };
  return h(
    "div.always",
    { role: "group", "aria-label": "always allow" },
    row.always.map(option),
    press("back", "Back", back, ".bare"),
  );
}

// ── What is to be looked at ──

function remedies(view, row, order) {
  const form = view.form(row.key);
  const host = h("div.host");
  const draw = (focus) => {
    const shape = form.open === "close" ? goodbye(view, row, () => open(null, "close")) : remedy();
    turn(host, [shape], focus);
    for (const control of host.querySelectorAll("button")) control.disabled = view.closed || waits(order);
  };
  const open = (name, focus) => {
    form.open = name;
    draw(focus);
  };
  const has = (act) => row.acts?.includes(act);
  const go = (op) => () => view.answer(row, op, { card: row.key });
  const { number, unit } = amounts(row.knob);
  const remedy = () =>
    h(
      "div.acts",
      {},
      has("raise") &&
        press("raise", `Allow ${number(row.limit)} more${unit}`, go("raise")),
      has("resume") && press("resume", "Resume", go("resume")),
      has("open") && row.session && opener(view, row),
      press("discuss", "Discuss", go("discuss"), row.face === "notice" ? "" : ".bare"),
      has("close") && press("close", "Close session…", () => open("close", "gone"), ".bare"),
    );
  draw();
  return host;
}

function goodbye(view, row, back) {
  const gone = press("gone", `Close ${row.name}`, () => view.answer(row, "close", { card: row.key }), ".tone");
  gone.dataset.k = "bad";
  const words = `Closes ${row.name} for good; its transcript stays readable.`;
  return h("div.acts", {}, h("span.meta", {}, words), gone, press("back", "Back", back, ".bare"));
}

/** The way to the session that a card is about: its view opens below the inbox. */
function opener(view, { name, session }) {
  return h("button.btn", { "data-part": "open", ...opens(view, session, name) }, "Open session");
}
