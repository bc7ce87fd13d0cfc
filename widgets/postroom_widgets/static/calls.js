// Tool calls: one line each, with its evidence folded away. The words are those of the saved view.

import { chip, h, icon, jump, running, say, span, plural } from "./kit.js";

export const STATES = {
  pending: "pending",
  running: "running",
  deferred: "waiting for you",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  timed_out: "timed out",
  orphaned: "orphaned",
};
const ARGUMENT_LINE = 200;

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
      return ["x", "bad", words];
    case "cancelled":
    case "timed_out":
      return ["x", "", words];
    default:
      return ["clock", "", words];
  }
}

function argumentLine(args) {
  const line = Object.entries(args ?? {})
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join("  ");
  return line.length > ARGUMENT_LINE ? `${line.slice(0, ARGUMENT_LINE)}…` : line;
}

/** Facts that stay in sight when the row is folded. */
function callNote(ctx, row) {
  if (row.sent)
    return h(
      "div.hold",
      {},
      h("span", {}, `${row.sent.mail ?? "mail"} to `),
      chip("agent", row.sent.name ?? row.sent.to),
    );
  if (row.error) return h("div.hold", {}, h("span.t", {}, first(row.error)));
  const held = row.hold && [
    h("span", {}, `placeholder: ${row.hold}`),
    row.mail && [
      h("span", { "aria-hidden": "true" }, "→"),
      h("span", {}, "result in ", jump(ctx, ctx.mail(row.mail), row.mail)),
    ],
  ];
  return [held && h("div.hold", {}, held), progress(row)];
}

function progress(row) {
  if (!row.progress) return null;
  const { done = 0, total, text } = row.progress;
  const share = total ? Math.round((100 * Math.min(done, total)) / total) : null;
  const bar = {
    role: "progressbar",
    "aria-label": row.tool,
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": share,
  };
  const fill = h("i");
  if (share !== null) fill.style.width = `${share}%`;
  const words = say(total ? `${done} of ${total}` : String(done), text);
  return h(
    "div.prog",
    {},
    share === null ? h("span") : h("div.bar", bar, fill),
    h("span", {}, words),
  );
}

/** How long a call took, or has been running. */
export function elapsed(ctx, row) {
  if (row.state !== "running" || !row.started || ctx.closed) return span(row.seconds);
  return running((Date.now() - Date.parse(row.started)) / 1000);
}

/** A call as a row that unfolds. */
export function call(ctx, row) {
  const [drawing, tone, words] = callLook(row);
  const output = row.error ?? row.result;
  const more = row.more ? `\n… ${plural(row.more, "more character")}` : "";
  const summary = h(
    "summary",
    {},
    h("span.ic", tone ? { "data-k": tone } : {}, icon(drawing)),
    h("span.name.clip", {}, row.tool),
    h("span.args.clip", {}, argumentLine(row.args)),
    h("span.stt", tone ? { "data-k": tone } : {}, words),
    h("span.el", {}, elapsed(ctx, row)),
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
  return h("div.call", { "aria-label": `call ${row.tool}, ${words}` }, fold, callNote(ctx, row));
}
