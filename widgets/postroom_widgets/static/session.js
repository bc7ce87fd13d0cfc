// The session view: header, banner, feed, send box. One store per model, so that two views of it
// agree and a view that is drawn anew loses nothing.

import { Composer } from "./composer.js";
import { Feed } from "./feed.js";
import { clock, count, h, icon, money, plural } from "./kit.js";
import { Shell, widgetOf } from "./shell.js";
import { Store } from "./store.js";
import { Strip } from "./strip.js";

/** What a session is doing, in words; the same as in the saved view. */
export function statusWords({ status, turn, calls, asks, end, needs }) {
  if (needs) return needs;
  if (status === "running" && turn) return `running · turn ${turn}`;
  if (status === "waiting" && calls) return `waiting · ${plural(calls, "call")}`;
  if ((status === "waiting" || status === "idle") && asks)
    return `${status} · ${plural(asks, "call waits", "calls wait")} for you`;
  if (status === "idle" && end === "stopped") return "idle · stopped";
  if (status === "failed" && turn) return `failed · in turn ${turn}`;
  if (status === "paused") return "paused · mail is kept";
  if (status === "capped") return "capped · mail from you goes on";
  return status;
}

/** The shape and colour of the status dot. */
function dot({ status, calls, asks, end }, closed) {
  if (closed) return "stopped";
  if (status === "waiting") return calls ? "running still" : "waiting";
  if (status === "idle" && asks) return "waiting";
  if (status === "capped") return "paused";
  if (status === "closed" || (status === "idle" && end === "stopped")) return "stopped";
  return status;
}

/** What a session can be let to go on from. */
const RESTING = ["ready", "paused", "failed", "capped"];

class View extends Shell {
  constructor(store) {
    super(store, `%watch ${store.head.name}`);
    this.root.classList.add("session");
    const redraw = (change) => (id) => {
      change(id);
      store.changed();
    };
    this.feed = new Feed(store, {
      reply: (row) => this.reply(row),
      edit: redraw((id) => store.outbox.edit(id)),
      discard: redraw((id) => store.outbox.discard(id)),
      order: (op, key, more) => store.order(op, key, more),
      opened: this.opened,
      later: () => this.schedule(),
      leave: () => this.composer.area.focus(),
    });
    this.strip = new Strip(this.feed);
    this.composer = new Composer(store, () => this.feed.toEnd());
    this.dot = h("span.st", { "aria-hidden": "true" });
    this.name = h("h2");
    this.status = h("span", { role: "status" });
    this.stats = h("div.stats");
    this.stop = h(
      "button.btn",
      { type: "button", onclick: () => store.order("stop") },
      icon("stop"),
      h("span.w", {}, "Stop"),
    );
    this.pause = h("button.btn", {
      type: "button",
      onclick: () => store.order(this.resumes ? "resume" : "pause"),
    });
    this.controls = h("div.ctrls", {}, this.pause, this.stop);
    this.head = h(
      "header.head",
      {},
      this.dot,
      h("div.who", {}, this.name, h("span.meta.clip", {}, this.status)),
      h("span.grow"),
      this.stats,
      this.controls,
    );
    this.root.append(
      this.head,
      this.banner,
      this.feed.root,
      this.strip.root,
      this.composer.root,
      this.foot,
    );
  }

  reply(row) {
    this.store.outbox.replyTo(row);
    this.store.changed();
    this.composer.area.focus();
  }

  paint() {
    this.drawHead();
    const saved = this.store.link === "saved";
    // Nobody reads any more what is written to a session that was closed.
    const mute = saved || this.store.head.status === "closed";
    this.composer.root.hidden = mute;
    if (!mute) this.composer.draw();
    this.feed.draw();
    this.strip.draw();
  }

  drawHead() {
    const { head, link, closed } = this.store;
    const gone = link === "gone" || link === "over";
    this.root.setAttribute("aria-label", `session ${head.name}`);
    this.dot.className = `st ${dot(head, gone)}`;
    this.name.textContent = head.name;
    const words = this.catchingUp() ?? statusWords(head);
    const told = gone ? "gone" : link === "saved" ? `${head.status} · ${clock(head.at)}` : words;
    if (this.status.textContent !== told) this.status.textContent = told;
    const number = (n, word) => h("span", {}, h("b", {}, n), ` ${word}`);
    this.stats.replaceChildren(
      h("span.wide", {}, [...new Set([head.agent, head.model])].filter(Boolean).join(" · ")),
      ...(head.unread && !closed ? [number(head.unread, "unread")] : []),
      ...(head.calls && !closed ? [number(head.calls, head.calls === 1 ? "call" : "calls")] : []),
      ...(head.asks && !closed ? [number(head.asks, "for you")] : []),
      ...(head.tokens ? [number(count(head.tokens), "tokens")] : []),
      ...(head.cost ? [h("span", {}, h("b", {}, money(head.cost)))] : []),
    );
    this.stats.classList.toggle("bare", this.stats.childElementCount === 1);
    this.head.classList.toggle("saved", link === "saved");
    const active = head.status === "running" || head.status === "waiting" || head.calls > 0;
    this.controls.hidden = link === "saved";
    const order = this.store.orders.get("");
    const asked = Boolean(order && !order.words);
    this.stop.disabled = closed || !active || asked;
    this.stop.setAttribute("aria-label", `Stop ${head.name}`);
    this.pause.disabled = closed || head.status === "closed" || asked;
    this.drawPause(RESTING.includes(head.status));
  }

  drawPause(resumes) {
    if (resumes === this.resumes) return;
    this.resumes = resumes;
    const word = resumes ? "Resume" : "Pause";
    this.pause.replaceChildren(icon(resumes ? "play" : "pause"), h("span.w", {}, word));
    this.pause.setAttribute("aria-label", `${word} ${this.store.head.name}`);
  }

  goneWords() {
    return super.goneWords(" Your text is kept.");
  }

  restore() {
    this.feed.restore();
  }

  tick() {
    this.feed.tick();
    this.strip.draw();
  }
}

export default () => widgetOf(Store, View);
