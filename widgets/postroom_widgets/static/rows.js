// One row of the feed as an element. The words are those of the saved view (wording.py).

import { STATES, call } from "./calls.js";
import { chip, clock, count, h, icon, jump, plural, say, span } from "./kit.js";

const REASONS = {
  answer: "final answer",
  budget: "budget of rounds",
  no_reply: "nothing to say",
  stopped: "stopped",
  paused: "paused",
  failed: "failed",
  closed: "closed",
  capped: "cap reached",
  interrupted: "the kernel ended",
};
const MARKS = {
  final_answer: "Rounds used up: a last answer, without tools",
  continuation: "Asked to go on",
};
const FOLD_LINES = 8;
const SHOWN_LINES = 3;

/** A text that folds when it is long and a machine wrote it. */
function textOf(ctx, row) {
  const lines = (row.text ?? "").split("\n");
  const more = row.more ? `\n… ${plural(row.more, "more character")}` : "";
  const element = h(`p.mt.t${row.mono ? ".mono" : ""}`, {}, (row.text ?? "") + more);
  if (!row.mono || lines.length <= FOLD_LINES || ctx.unfolded.has(row.key)) return element;
  element.textContent = lines.slice(0, SHOWN_LINES).join("\n");
  const unfold = () => {
    ctx.unfolded.add(row.key);
    ctx.redraw(row.key);
  };
  return [
    element,
    h(
      "button.link.more",
      { type: "button", onclick: unfold },
      `and ${plural(lines.length - SHOWN_LINES, "line")}`,
    ),
  ];
}

// ── Mail ──

function receipt(ctx, row) {
  const step = (kind, ...words) => h(`span.step${kind}`, {}, h("span", {}, words));
  if (row.state === "queued") return h("div.rc", {}, step("", "queued, not delivered yet"));
  if (row.state === "read" || row.control) return null;
  if (row.state === "withdrawn")
    return h("div.rc", {}, step("", "withdrawn before it was read"));
  const answered = row.state === "answered";
  const steps = [];
  if (row.tone === "user") steps.push(step(".on", "queued"));
  if (row.turn && (row.tone === "user" || !answered))
    steps.push(step(answered ? ".on" : ".cur", `delivered in turn ${row.turn}`));
  if (answered)
    steps.push(
      step(".cur", "answered in ", jump(ctx, `t:${row.answered}`, `turn ${row.answered}`)),
    );
  return h(
    "div.rc",
    {},
    steps.flatMap((element, i) => (i ? [h("span.sep"), element] : [element])),
  );
}

function resultOf(ctx, row) {
  if (!row.result) return null;
  const done = row.result === "completed";
  const words = done ? "result" : (STATES[row.result] ?? row.result);
  if (!row.turn_of_call) return h("span.meta", {}, words);
  return h(
    "span.meta",
    {},
    done ? "result of the call in " : `${words} call of `,
    jump(ctx, `c:${row.call}`, `turn ${row.turn_of_call}`),
  );
}

function control(row) {
  const words = `${row.name} · ${row.text}`;
  return h(
    "div.order",
    { "data-k": "sys", "aria-label": `order ${row.id}: ${words}` },
    chip(row.tone, row.name),
    h("b", {}, row.text),
    h("span.id.opt", {}, row.id),
    h("span.meta", {}, clock(row.at)),
  );
}

function mail(ctx, row) {
  if (row.control) return control(row);
  const reply = () => ctx.reply(row);
  const replies = !ctx.closed && (row.tone === "user" || row.tone === "agent");
  const unread = row.state === "queued" ? ".unread" : "";
  return h(
    `article.mailbox${unread}`,
    { "data-k": row.interrupt ? "now" : row.tone, "aria-label": `mail ${row.id} from ${row.name}` },
    h(
      "div.mh",
      {},
      chip(row.tone, row.name, row.of),
      row.interrupt && h("span.flag", { "data-k": "now" }, icon("bolt", "fill"), "interrupt"),
      row.re && h("span.meta", {}, "re ", row.re),
      resultOf(ctx, row),
      row.hops &&
        h(
          "span.meta",
          { title: `${plural(row.hops, "letter")} between agents since you last wrote` },
          plural(row.hops, "hop"),
        ),
      row.expects && h("span.meta", {}, "expects reply"),
      h(
        "span.time.row",
        {},
        replies &&
          h("button.mini.reply", { type: "button", onclick: reply }, icon("reply"), "Reply"),
        h("span.id.opt", {}, row.id),
        h("span.meta", {}, clock(row.at)),
      ),
    ),
    textOf(ctx, row),
    receipt(ctx, row),
  );
}

// ── Turns: the model's words stream in, whole sentences at a time for whoever listens ──

function turnFacts(row) {
  if (row.live) return row.text ? "streaming" : "asked";
  return say(
    span(row.seconds),
    row.in && `${count(row.in)} in`,
    row.out && `${count(row.out)} out`,
  );
}

function turn(ctx, row) {
  const facts = h("span.r");
  const told = h("span");
  const rest = h("span");
  const caret = h("span.caret", { "aria-hidden": "true" });
  const words = h("p.say.t", {}, told, rest, caret);
  const element = h(
    "section.turn",
    { "aria-label": `turn ${row.index}` },
    h("div.turn-h", {}, h("b", {}, `Turn ${row.index}`), h("span", {}, clock(row.at)), facts),
    words,
  );
  element.update = (next) => {
    const text =
      (next.text ?? "") + (next.more ? `\n… ${plural(next.more, "more character")}` : "");
    const live = next.live && !ctx.closed;
    const known = told.textContent;
    if (!text.startsWith(known)) told.replaceChildren();
    const from = told.textContent.length;
    const end = live ? sentenceEnd(text) : text.length;
    if (end > from) told.append(text.slice(from, end));
    rest.textContent = text.slice(Math.max(end, from));
    rest.toggleAttribute("aria-hidden", live);
    if (live) rest.setAttribute("aria-hidden", "true");
    caret.hidden = !live;
    words.hidden = !text && !live;
    facts.textContent = ctx.closed && next.live ? "" : turnFacts(next);
    return true;
  };
  element.update(row);
  return element;
}

/** Where the last whole sentence or line of a text ends. */
function sentenceEnd(text) {
  let end = 0;
  for (const match of text.matchAll(/[.!?:]["”')]*\s|\n/g)) end = match.index + match[0].length;
  return end;
}

// ── Marks, ends, failures ──

function mark(ctx, row) {
  const line = (kind, drawing, head, rest) =>
    h("div.mark", { "data-k": kind }, drawing, h("b", {}, head), rest && h("span.w", {}, rest));
  if (row.mark === "interrupt") {
    const n = row.detached ?? 0;
    const kept =
      n > 0 && `${plural(n, "attached call")} detached, ${n === 1 ? "keeps" : "keep"} running`;
    return line("now", icon("bolt", "fill"), `Interrupted by ${row.by}`, [
      h("span.opt", {}, jump(ctx, ctx.mail(row.id), row.id), kept && " · "),
      kept,
    ]);
  }
  if (row.mark === "inbox")
    return line("sys", null, "INBOX", `${plural(row.count, "mail")} read into turn ${row.turn}`);
  return line("sys", null, MARKS[row.mark] ?? row.mark);
}

function end(row) {
  const head = { failed: "Run failed", paused: "Run paused" }[row.reason] ?? "Run ended";
  const reason = head === "Run ended" && (REASONS[row.reason] ?? row.reason);
  return h(
    "div.end",
    {},
    icon("end"),
    h(
      "div",
      {},
      h("b", {}, head),
      ...[say(reason, row.rounds && plural(row.rounds, "round"), span(row.seconds))].map(
        (words) => words && ` · ${words}`,
      ),
    ),
  );
}

function failure(ctx, row) {
  const trace = (row.traceback ?? "").trim();
  const lines = trace.split("\n").length;
  const ontoggle = (event) =>
    event.target.open ? ctx.unfolded.add(row.key) : ctx.unfolded.delete(row.key);
  return h(
    "div.fail",
    { role: "alert" },
    h("p.h", {}, "The run failed"),
    h("p.t", {}, row.text),
    h(
      "p.meta",
      {},
      `Nothing was lost: what was stored is kept, unread mail too. Send mail or run %resume ${ctx.name} to go on.`,
    ),
    trace &&
      h(
        "details",
        { open: ctx.unfolded.has(row.key), ontoggle },
        h(
          "summary.row.meta",
          {},
          h("span.chev", {}, icon("chev")),
          `Traceback, ${plural(lines, "line")}`,
        ),
        h("pre", {}, trace),
      ),
  );
}

/** Words that the kernel has not confirmed. */
export function lost(ctx, item) {
  const why = item.error ? `not sent: ${item.error}` : item.words;
  const edit = item.ours && [
    h("button.mini", { type: "button", onclick: () => ctx.edit(item.id) }, "Edit"),
    h("button.mini", { type: "button", onclick: () => ctx.discard(item.id) }, "Discard"),
  ];
  return h(
    "article.mailbox.lost",
    { "data-k": "sys", "aria-label": "undelivered mail" },
    h(
      "div.mh",
      {},
      chip("user", "you"),
      item.interrupt && h("span.flag", { "data-k": "now" }, icon("bolt", "fill"), "interrupt"),
      item.reply && h("span.meta", {}, "re ", item.reply.id),
      h("span.time.row", {}, h("span.meta", {}, clock(item.at))),
    ),
    h("p.mt.t", {}, item.text),
    h(
      "div.rc",
      {},
      h(
        "span.flag",
        { "data-k": item.error ? "bad" : "now" },
        icon(item.error ? "x" : "clock"),
        why,
      ),
      h("span.grow"),
      edit,
    ),
  );
}

/** The element of a row; `update(row)` of it, where there is one, takes a change in place if it can. */
export function element(ctx, row, order) {
  switch (row.kind) {
    case "mail":
      return mail(ctx, row);
    case "turn":
      return turn(ctx, row);
    case "call":
      return call(ctx, row, order);
    case "mark":
      return mark(ctx, row);
    case "end":
      return end(row);
    case "fail":
      return failure(ctx, row);
    default:
      return h("div.meta", {}, `A ${row.kind} that this version cannot show`);
  }
}
