// One row of the feed as an element. The words are those of the saved view (wording.py).

import { call } from "./calls.js";
import { STATES, chip, clock, count, h, icon, jump, money, plural, running, say, span } from "./kit.js";
import { sessionChip } from "./opened.js";
import { Prose } from "./prose.js";

const REASONS = {
  answer: "final answer",
  budget: "budget of rounds",
  no_reply: "nothing to say",
  stopped: "stopped by you",
  paused: "paused",
  failed: "failed",
  closed: "session closed",
  capped: "cap reached",
  interrupted: "the kernel ended",
};
const CAPS = {
  max_autonomous_rounds: "budget of rounds without a word from you",
  max_requests: "budget of requests",
  max_tokens: "budget of tokens",
  max_cost: "budget of money",
  "room.max_requests": "budget of requests of the room",
  "room.max_tokens": "budget of tokens of the room",
  "room.max_cost": "budget of money of the room",
};
const MARKS = {
  final_answer: "Rounds used up: a last answer, without tools",
  continuation: "Asked to go on",
};
// From how much on a text folds, and to how much: a machine's sooner than a person's.
const FOLDS = {
  mono: { lines: 8, keep: 3, letters: 2000, keepLetters: 400 },
  prose: { lines: 40, keep: 20, letters: 6000, keepLetters: 2000 },
};

/** What a folded text shows, and what it says is left; null for a text that is short. */
export function folded(text, mono) {
  const bound = FOLDS[mono ? "mono" : "prose"];
  const lines = text.split("\n");
  if (lines.length > bound.lines) {
    const shown = lines.slice(0, bound.keep).join("\n").slice(0, bound.letters);
    return { shown, left: `and ${plural(lines.length - bound.keep, "line")}` };
  }
  if (text.length <= bound.letters) return null;
  const left = (text.length - bound.keepLetters).toLocaleString("en");
  return { shown: text.slice(0, bound.keepLetters), left: `and ${left} characters` };
}

/** A text that folds when it is long. */
function textOf(ctx, row) {
  const text = (row.text ?? "") + (row.more ? `\n… ${plural(row.more, "more character")}` : "");
  const fold = folded(text, row.mono);
  const open = ctx.unfolded.has(row.key);
  const shown = fold && !open ? fold.shown : text;
  const prose = !row.mono && new Prose(".mt");
  if (prose) prose.show(shown);
  const element = prose ? prose.root : h("p.mt.t.mono", {}, shown);
  if (!fold) return element;
  const turn = () => {
    if (open) ctx.unfolded.delete(row.key);
    else ctx.unfolded.add(row.key);
    ctx.redraw(row.key);
    ctx.focus(row.key, ".more");
  };
  const more = { type: "button", "aria-expanded": String(open), onclick: turn };
  return [element, h("button.link.more", more, open ? "Show less" : fold.left)];
}

// ── Mail ──

/** How far a mail got, step by step; turns and mails are links. */
function receipt(ctx, row) {
  const step = (kind, ...words) => h(`span.step${kind}`, {}, h("span", {}, words));
  const turn = (n) => jump(ctx, `t:${n}`, `turn ${n}`);
  if (row.state === "queued")
    return h("div.rc", {}, step("", "queued, not delivered yet"), row.note && h("span", {}, row.note));
  if (row.state === "read" || row.control) return null;
  if (row.state === "withdrawn")
    return h("div.rc", {}, step("", "withdrawn before it was read"));
  const answered = row.state === "answered";
  const steps = [];
  if (row.tone === "user") steps.push(step(".on", "queued"));
  if (row.turn && (row.tone === "user" || !answered))
    steps.push(step(answered ? ".on" : ".cur", "delivered in ", turn(row.turn)));
  if (answered) {
    const by = row.by && [" by ", jump(ctx, row.by, row.by)];
    steps.push(step(".cur", "answered in ", turn(row.answered), by));
  }
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
  const unread = { queued: ".unread", withdrawn: ".withdrawn" }[row.state] ?? "";
  return h(
    `article.mailbox${unread}`,
    { "data-k": row.interrupt ? "now" : row.tone, "aria-label": `mail ${row.id} from ${row.name}` },
    h(
      "div.mh",
      {},
      row.tone === "agent" ? sessionChip(ctx, row.from, row.name, row.of) : chip(row.tone, row.name, row.of),
      row.interrupt && h("span.flag", { "data-k": "now" }, icon("bolt", "fill"), "interrupt"),
      row.re && h("span.meta", {}, "re ", jump(ctx, row.re, row.re)),
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

/** How much of a turn is there. How many tokens that are is told when it is whole. */
export function streamedWords({ text = "", more = 0 }) {
  let letters = more;
  for (const _ of text) letters += 1; // as the kernel counts them: by code point
  if (!letters) return "asked";
  return `streaming · ${letters.toLocaleString("en")} character${letters === 1 ? "" : "s"}`;
}

function turnFacts(row) {
  if (row.live) return say(streamedWords(row), running((Date.now() - Date.parse(row.at)) / 1000));
  return say(
    span(row.seconds),
    row.in && `${count(row.in)} in`,
    row.out && `${count(row.out)} out`,
    money(row.cost),
  );
}

function turn(ctx, row) {
  const facts = h("span.r");
  const prose = new Prose(".say");
  const words = prose.root;
  const element = h(
    "section.turn",
    { "aria-label": `turn ${row.index}` },
    h("div.turn-h", {}, h("b", {}, `Turn ${row.index}`), h("span", {}, clock(row.at)), facts),
    words,
  );
  let now = row;
  element.update = (next) => {
    now = next;
    const more = next.more ? `\n… ${plural(next.more, "more character")}` : "";
    const live = Boolean(next.live && !ctx.closed);
    words.hidden = !next.text && !live;
    prose.show((next.text ?? "") + more, live);
    element.tick();
    return true;
  };
  element.tick = () => {
    const told = ctx.closed && now.live ? "" : turnFacts(now);
    if (facts.textContent !== told) facts.textContent = told;
  };
  element.update(row);
  return element;
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
      h("span.opt", {}, jump(ctx, row.id, row.id), kept && " · "),
      kept,
    ]);
  }
  if (row.mark === "inbox")
    return line("sys", null, "INBOX", `${plural(row.count, "mail")} read into turn ${row.turn}`);
  return line("sys", null, MARKS[row.mark] ?? row.mark);
}

/** How many rounds of how many a run took: `5 of 13 rounds, extended once`. */
function roundsWords({ rounds = 0, allowed = 0, extended = 0 }) {
  if (!rounds || !allowed) return rounds ? plural(rounds, "round") : "";
  const more = extended === 1 ? "once" : `${extended} times`;
  const told = `${Math.min(rounds, allowed)} of ${plural(allowed, "round")}${extended ? `, extended ${more}` : ""}`;
  // The model is asked once more when its rounds are used up.
  return told + (rounds > allowed ? " and a last answer" : "");
}

/** How a run ended: the head of the line, and the rest of it. */
export function endWords(row) {
  const head = { failed: "Run failed", paused: "Run paused" }[row.reason] ?? "Run ended";
  const reason = head === "Run ended" && (CAPS[row.cap] ?? REASONS[row.reason] ?? row.reason);
  return [head, say(reason, roundsWords(row), span(row.seconds))];
}

function end(row) {
  const [head, rest] = endWords(row);
  return h(
    "div.end",
    {},
    icon("end"),
    h(
      "div",
      {},
      h("b", {}, head),
      rest && ` · ${rest}`,
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
