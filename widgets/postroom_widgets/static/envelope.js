// The pane below the diagram: all of one letter, and of anything else that is selected.

import { labelOf, source, target, textOf } from "./filing.js";
import { STATES, chip, clock, h, icon, plural } from "./kit.js";
import { opens, sessionChip } from "./opened.js";

const MAIL = new Set(["mail", "reply", "interrupt", "control", "result", "watched", "timer", "system"]);
const HOPS = 16;

export class Envelope {
  constructor(pick, opened) {
    this.pick = pick;
    this.ctx = { opened, closed: false };
    this.root = h("div.detail", { role: "region", "aria-label": "selected mail" });
  }

  draw(mark, log, closed) {
    this.ctx.closed = closed;
    const sign = mark ? JSON.stringify([mark, closed, log.answers.get(mark.id)?.key, barOf(mark, log)]) : "";
    if (sign === this.sign) return;
    this.sign = sign;
    if (!mark)
      return this.root.replaceChildren(h("p.meta", {}, "Select an arrow to read what it says."));
    this.root.replaceChildren(this.head(mark, log), this.text(mark), this.facts(mark, log));
  }

  head(mark, log) {
    const heavy = mark.what === "interrupt";
    const { ctx } = this;
    const name = (id) => log.names.get(id) ?? "?";
    const of = (id) => (id === "" ? chip("user", name(id)) : sessionChip(ctx, log.names.has(id) && id, name(id)));
    const [from, to] = [source(mark), target(mark)];
    const main = [to, from].find((id) => id && log.names.has(id));
    const flag = (tone, drawing, words) => h("span.flag", { "data-k": tone }, icon(drawing, drawing === "bolt" ? "fill" : ""), words);
    return h(
      "div.env",
      {},
      of(from),
      from !== to && [h("span.to", { "aria-hidden": "true" }, "→"), h("span.sr", {}, "to"), of(to)],
      heavy && flag("now", "bolt", mark.lowered ? "interrupt, lowered to normal" : "interrupt"),
      mark.what === "refused" && flag("bad", "x", labelOf(mark)),
      mark.what === "failed" && flag(mark.tone, "warn", mark.tone === "bad" ? "failed" : labelOf(mark)),
      !["mail", "interrupt", "refused", "failed"].includes(mark.what) && h("span.meta", {}, kindWords(mark)),
      mark.expects && h("span.meta", {}, "expects reply"),
      h("span.grow"),
      mark.id && mark.id !== to && h("span.id", {}, mark.id),
      h("span.meta", {}, clock(mark.at)),
      main && !ctx.closed && h("button.btn.small", opens(ctx, main, name(main)), `Open ${name(main)}`),
    );
  }

  text(mark) {
    const mono = ["call", "result", "watched"].includes(mark.what);
    const more = mark.more ? `\n… ${plural(mark.more, "more character")}` : "";
    return h(mono ? "pre.t" : "p.t", { tabindex: mono ? 0 : null }, textOf(mark) + more);
  }

  facts(mark, log) {
    const told = [];
    const say = (term, ...words) => told.push(h("div", {}, h("dt", {}, term), h("dd", {}, words)));
    if (mark.hops) say("hops", `${mark.hops} of ${HOPS}`);
    if (MAIL.has(mark.what)) say("receipt", receipt(mark));
    if (mark.re) say("in reply to", this.link(mark.re, log));
    const answer = mark.id && log.answers.get(mark.id);
    if (answer) say("answered by", this.link(answer.id, log));
    const bar = barOf(mark, log);
    if (bar) say("call", `${STATES[bar.state] ?? bar.state}${bar.detached ? ", detached" : ""}`);
    say("row", String(mark.n));
    return h("dl", {}, told);
  }

  link(id, log) {
    const mark = log.mail.get(id);
    if (!mark) return id;
    return h("button.link", { type: "button", onclick: () => this.pick(mark.key) }, id);
  }
}

function kindWords(mark) {
  return mark.what === "close" ? "session closed" : mark.what === "spawn" ? "spawned" : mark.what;
}

/** How far mail got, in the words of a receipt. */
export function receipt({ turn, unread }) {
  if (unread) return "queued, not delivered yet";
  return turn ? `queued, delivered in turn ${turn}` : "queued, read";
}

function barOf(mark, log) {
  if (mark.what !== "call" || !mark.id) return null;
  return log.bars.find((bar) => bar.call === mark.id) ?? null;
}
