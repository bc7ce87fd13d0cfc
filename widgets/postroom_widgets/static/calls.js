// Tool calls: one line each, with its evidence folded away. The words are those of the saved view.

import { asking } from "./asking.js";
import { STATES, argumentLine, button, h, icon, jump, minute, running, say, span, plural } from "./kit.js";
import { sessionChip } from "./opened.js";

export const ASK = "Runs only if you approve.";
const LAST_HOUR = 3600; // seconds, of a question
const QUICK_SECONDS = 1; // calls that end sooner never show a second line

const OPEN = ["pending", "running", "deferred"];

export const isOpen = (row) => row.kind === "call" && OPEN.includes(row.state);

const first = (text) => (text ?? "").trim().split("\n", 1)[0];

function callLook(row) {
  if (row.sent) return ["out", "", "sent"];
  const words =
    row.state === "completed" && row.mail ? "completed by mail" : (STATES[row.state] ?? row.state);
  switch (row.state) {
    case "completed":
      return [row.hold ? "detach" : "check", "", words];
    case "running":
      return ["clock", "tool", words];
    case "deferred":
      return ["shield", "now", words];
    case "failed":
    case "orphaned":
    case "denied":
      return ["x", "bad", words];
    case "cancelled":
    case "timed_out":
      return ["x", "", words];
    default:
      return ["clock", "", words];
  }
}

/** How much of a call is done, 0 to 100; null when nobody knows. */
export function share({ progress }) {
  if (!progress?.total) return null;
  return Math.round((100 * Math.min(progress.done ?? 0, progress.total)) / progress.total);
}

/** The bar of a call that says how far it is. */
export function bar(row) {
  const fill = h("i");
  fill.style.width = `${share(row)}%`;
  const range = { "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": share(row) };
  return h("div.bar", { role: "progressbar", "aria-label": row.tool, ...range }, fill);
}

function progressWords({ progress }) {
  if (!progress) return "";
  const { done = 0, total, text } = progress;
  return say(total ? `${done} of ${total}` : done ? String(done) : "", text);
}

function seconds(row) {
  return row.started ? (Date.now() - Date.parse(row.started)) / 1000 : 0;
}

/** Whether a call has been open for so long that it is worth a line more. */
export function lasts(row) {
  return Boolean(
    row.state !== "running" || row.progress || row.hold || seconds(row) > QUICK_SECONDS,
  );
}

/** Facts that stay in sight when the row is folded. */
function callNote(ctx, row, order) {
  if (row.sent) return sent(ctx, row.sent);
  if (row.state === "deferred") return ask(ctx, row, order);
  const failed = row.error && !["cancelled", "denied"].includes(row.state);
  return [
    failed && h("div.hold", {}, h("span.t", {}, first(row.error))),
    row.hold ? held(ctx, row) : row.decided && h("div.hold", {}, row.decided),
    row.child && child(ctx, row),
  ];
}

/** The session that a call works in: pressed, it is seen below; where nothing can be pressed, a command shows it. */
function child(ctx, row) {
  const { id, name } = row.child;
  return h("div.hold", {}, sessionChip(ctx, id, name, "child"), ctx.closed && h("code.id", {}, childCommand(row)));
}

/** How far a letter got that a call sent. */
export function sentReceipt({ left, read, seq, turn }) {
  if (turn) return `delivered in its turn ${turn}`;
  if (read) return "delivered";
  if (left) return "closed before it was read";
  return seq ? "queued, not delivered yet" : "";
}

function sent(ctx, letter) {
  const told = sentReceipt(letter);
  return h(
    "div.hold",
    {},
    h("span", {}, `${letter.mail ?? "mail"} to `),
    sessionChip(ctx, letter.to, letter.name ?? letter.to),
    told && h("span", {}, ` · ${told}`),
  );
}

/** What shows the session that a call works in. */
export function childCommand({ child, state }) {
  return OPEN.includes(state) ? `%watch ${child.name}` : `%transcript ${child.id}`;
}

function held(ctx, row) {
  return h(
    "div.hold",
    {},
    h("span", {}, say(row.decided, `placeholder: ${row.hold}`)),
    (row.mail || isOpen(row)) && h("span", { "aria-hidden": "true" }, "→"),
    row.mail
      ? h("span", {}, "result in ", jump(ctx, row.mail, row.mail))
      : isOpen(row) && h("span", {}, "its result comes as mail"),
  );
}

/** The line of a call that runs: how far it is, in its own words, and the way to end it. */
function work(ctx, row, order) {
  if (row.state !== "pending" && row.state !== "running") return null;
  const rail = h("span.rail");
  const words = h("span.clip");
  const end = () => ctx.order("cancel", row.key, { call: row.id });
  const cancel =
    !ctx.closed &&
    button("Cancel", { "aria-label": `Cancel ${row.tool}`, disabled: busy(order), onclick: end });
  const element = h("div.prog", {}, rail, words, cancel);
  element.update = (next) => {
    const known = share(next) !== null;
    const fill = rail.querySelector(".bar > i");
    if (known && fill) {
      fill.style.width = `${share(next)}%`;
      fill.parentNode.setAttribute("aria-valuenow", share(next));
    } else rail.replaceChildren(...(known ? [bar(next)] : []));
    words.textContent = progressWords(next);
    element.hidden = ctx.closed ? !next.progress : !lasts(next);
  };
  element.update(row);
  return element;
}

const busy = (order) => Boolean(order && !order.words);

/** How long a question may still be answered: within its last hour by the second, else until when. */
export function leftWords(until, now = Date.now()) {
  const left = (Date.parse(until) - now) / 1000;
  if (!(left < LAST_HOUR)) return until ? `until ${minute(until)}` : "";
  return left > 0 ? `${running(Math.ceil(left))} left` : "expired";
}

const askWords = (ctx, { reason, until }) =>
  say(reason, ASK, ctx.closed ? until && `until ${minute(until)}` : leftWords(until));

/** The line of a call that waits for a person. */
function ask(ctx, row, order) {
  const words = askWords(ctx, row);
  if (ctx.closed || !row.approval) return h("div.hold", {}, words);
  const { approval, key, tool, args } = row;
  const turn = (open, selector) => {
    if (open) ctx.asking.set(key, open);
    else ctx.asking.delete(key);
    ctx.redraw(key);
    ctx.focus(key, selector);
  };
  const answer = (op, more) => {
    if (ctx.order(op, key, { approval, ...more })) ctx.asking.delete(key);
  };
  return asking({
    words,
    tool,
    args,
    disabled: busy(order),
    open: ctx.asking.get(key) ?? null,
    turn,
    approve: (edits) => answer("approve", Object.keys(edits).length ? { edits } : {}),
    deny: (reason) => answer("deny", { reason }),
  });
}

/** How long a call took, or has been running. */
export function elapsed(ctx, row) {
  if (row.state !== "running" || !row.started || ctx.closed) return span(row.seconds);
  return running((Date.now() - Date.parse(row.started)) / 1000);
}

/** A call as a row that unfolds; `order` is what a button of it asked for and has come to. */
export function call(ctx, row, order) {
  const [drawing, tone, words] = callLook(row);
  const output = row.error ?? row.result;
  const more = row.more ? `\n… ${plural(row.more, "more character")}` : "";
  const took = h("span.el", {}, elapsed(ctx, row));
  const summary = h(
    "summary",
    {},
    h("span.ic", tone ? { "data-k": tone } : {}, icon(drawing)),
    h("span.name.clip", {}, row.tool),
    h("span.args.clip", {}, argumentLine(row.args)),
    h("span.stt", tone ? { "data-k": tone } : {}, words),
    took,
    h("span.chev", {}, icon("chev")),
  );
  const body = h(
    "div.body",
    {},
    h("div.lab", {}, `arguments · ${row.id}`),
    h("pre", {}, JSON.stringify(row.args ?? {}, null, 2)),
  );
  if (output)
    body.append(h("div.lab", {}, row.error ? "error" : "result"), h("pre", {}, output + more));
  const ontoggle = (event) =>
    event.target.open ? ctx.unfolded.add(row.key) : ctx.unfolded.delete(row.key);
  const fold = h("details", { open: ctx.unfolded.has(row.key), ontoggle }, summary, body);
  const line = work(ctx, row, order);
  const told = order?.words && h("div.hold.told", { "data-k": "now", role: "status" }, order.words);
  const name = { "aria-label": `call ${row.tool}, ${words}` };
  // What somebody is to say yes to is shown whole, however narrow the page.
  const asks = row.state === "deferred" ? ".asks" : "";
  const element = h(`div.call${asks}`, name, fold, line, callNote(ctx, row, order), told);
  // A report every moment must not take a button away from under somebody's finger.
  element.update = (next) => {
    if (!line || besides(next) !== besides(row)) return false;
    line.update(next);
    return true;
  };
  element.tick = () => {
    if (row.state === "running") took.textContent = elapsed(ctx, row);
    if (line?.hidden && !ctx.closed) line.hidden = !lasts(row);
    const words = row.state === "deferred" && row.until && element.querySelector(".ask .grow");
    if (words) words.textContent = askWords(ctx, row);
  };
  return element;
}

/** All of a row but how far it is. */
const besides = (row) => JSON.stringify({ ...row, v: 0, progress: null });
