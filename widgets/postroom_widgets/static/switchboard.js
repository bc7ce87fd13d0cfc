// The switchboard: every session of a room, and the mail between them as a diagram that grows.

import { Diagram } from "./diagram.js";
import { keySigns } from "./drawing.js";
import { Envelope } from "./envelope.js";
import { file } from "./filing.js";
import { button, count, h, icon, money } from "./kit.js";
import { Player } from "./player.js";
import { Shell, widgetOf } from "./shell.js";
import { Tree } from "./tree.js";
import { Wire } from "./wire.js";

const OLDER = 200;

class Board extends Wire {
  get active() {
    return this.head.running > 0 || this.head.calls > 0;
  }

  /** The rows in order; filed anew only when some have changed. */
  log() {
    const moment = `${this.life} ${this.live} ${this.version} ${this.rows.size} ${this.earlier}`;
    if (this.moment !== moment) this.filed = file(this.rows.values(), this.earlier);
    this.moment = moment;
    return this.filed;
  }

  order(op, key, more) {
    for (const [other, { words }] of this.orders) if (words) this.orders.delete(other);
    return super.order(op, key, more);
  }

  decided(id, op, words) {
    const ours = super.decided(id, op, words);
    for (const [key, order] of this.orders)
      if (op === "ack" && order.id === id) this.orders.delete(key);
    return ours;
  }
}

class Switchboard extends Shell {
  constructor(store) {
    super(store, "%watch --all");
    this.root.classList.add("board");
    this.root.setAttribute("aria-label", "switchboard");
    this.diagram = new Diagram({
      pick: (mark) => this.envelope.draw(mark, store.log(), store.closed),
      moved: () => this.player.moved(),
      filtered: () => this.player.draw(store.log(), store.link === "saved"),
    });
    this.tree = new Tree((id) => this.choose(id), this.opened);
    this.player = new Player(this.diagram, () => store.head.name);
    this.envelope = new Envelope((key) => this.diagram.pick(key, true), this.opened);
    this.status = h("span.meta.clip", { role: "status" });
    this.stats = h("div.stats");
    const order = (op, more) => () => store.order(op, op, more?.());
    this.pause = h("button.btn", { type: "button", onclick: () => store.order(this.resumes ? "resume" : "pause", "all") });
    this.stepping = h(
      "button.btn",
      { type: "button", "aria-pressed": "false", title: "Hold mail, and let it through letter by letter" },
      icon("gate"),
      h("span.w", {}, "Step mode"),
    );
    this.stepping.addEventListener("click", () => store.order("stepping", "stepping", { on: !store.head.stepping }));
    this.controls = h("div.ctrls", {}, this.stepping, this.pause);
    this.head = h(
      "header.head",
      {},
      h("div.who", {}, h("h2", {}, "Switchboard"), this.status),
      h("span.grow"),
      this.stats,
      this.controls,
    );
    this.held = h("span.held", { role: "status" });
    this.through = h("button.btn.small.solid", { type: "button", onclick: order("step") }, "Let it through");
    this.gate = h("div.gate", { "data-k": "now" }, icon("gate"), this.held, this.through);
    this.refusal = h("div.banner", { "data-k": "bad", role: "alert" });
    this.older = button("", { onclick: () => store.older(OLDER) }, ".bare.older");
    this.key = h("div.key", { "aria-hidden": "true" }, ...legend());
    this.main = h(
      "div.sb",
      {},
      this.tree.root,
      h("div.side", {}, this.player.root, this.gate, this.older, this.diagram.root, this.envelope.root),
    );
    this.empty = h(
      "div.empty",
      {},
      h("p", {}, "No sessions yet."),
      h("p.meta", {}, "Start one with ", h("code", {}, "%spawn echo --as ann Hello")),
    );
    this.root.append(this.head, this.banner, this.refusal, this.empty, this.main, this.key, this.foot);
    new ResizeObserver(() => this.root.isConnected && this.shown && this.diagram.draw()).observe(this.diagram.root);
  }

  choose(id) {
    this.diagram.focus = id;
    this.diagram.draw(true);
    this.player.moved();
    this.drawTree();
  }

  paint() {
    const { store } = this;
    const log = store.log();
    this.shown = log.lines.length > 0;
    this.main.hidden = this.key.hidden = !this.shown;
    this.empty.hidden = this.shown;
    this.drawHead(log);
    if (!this.shown) return;
    this.drawTree();
    this.drawGate();
    this.older.hidden = !log.earlier || store.closed;
    if (log.earlier) this.older.textContent = `Show earlier ones, ${log.earlier.toLocaleString("en")} are left`;
    if (this.log !== log) this.diagram.show(log);
    this.log = log;
    this.diagram.next = store.head.next?.id ?? "";
    this.diagram.draw();
    this.player.draw(log, store.link === "saved");
    const { selected } = this.diagram;
    this.envelope.draw(selected ? this.diagram.markOf(selected) : null, log, store.closed);
    this.envelope.root.hidden = store.link === "saved" && !selected;
  }

  drawTree() {
    const { closed, link } = this.store;
    const state = { focus: this.diagram.focus, saved: link === "saved", gone: closed && link !== "saved" };
    this.tree.draw(this.store.log(), state);
  }

  drawHead(log) {
    const { closed, head, link, orders } = this.store;
    const words = this.catchingUp() ?? (closed && link !== "saved" ? "gone" : head.name);
    if (this.status.textContent !== words) this.status.textContent = words;
    const number = (n, word) => (n ? h("span", {}, h("b", {}, n), ` ${word}`) : "");
    const told = [
      number(head.sessions, head.sessions === 1 ? "session" : "sessions"),
      !closed && number(head.running, "running"),
      !closed && number(head.unread, "unread"),
      !closed && number(head.asks, "for you"),
      head.tokens > 0 && number(count(head.tokens), "tokens"),
      head.cost > 0 && h("span", {}, h("b", {}, money(head.cost))),
    ];
    const sign = told.map((part) => part?.textContent ?? "").join("|");
    if (sign !== this.toldOf) this.stats.replaceChildren(...told.filter(Boolean));
    this.toldOf = sign;
    this.controls.hidden = link === "saved" || !log.lines.length;
    const paused = log.lines.filter((line) => line.status === "paused").length;
    const resumes = paused > 0 && paused === head.sessions;
    if (resumes !== this.resumes) {
      this.resumes = resumes;
      this.pause.replaceChildren(icon(resumes ? "play" : "pause"), h("span.w", {}, resumes ? "Resume all" : "Pause all"));
      this.pause.setAttribute("aria-label", resumes ? "Resume all sessions" : "Pause all sessions");
    }
    const asked = (key) => Boolean(orders.get(key) && !orders.get(key).words);
    this.pause.disabled = closed || asked("all") || !head.sessions;
    this.stepping.disabled = closed || asked("stepping");
    this.stepping.setAttribute("aria-pressed", String(Boolean(head.stepping)));
    this.through.disabled = closed || asked("step") || !head.next;
    const refused = [...orders.values()].map((order) => order.words).filter(Boolean).join(" ");
    this.refusal.hidden = !refused;
    if (this.refused !== refused) this.refusal.replaceChildren(icon("warn"), h("span", {}, refused));
    this.refused = refused;
  }

  drawGate() {
    const { closed, head } = this.store;
    this.gate.hidden = !head.stepping || closed;
    if (this.gate.hidden) return;
    const { held = 0, next } = head;
    const words = next ? `${held} held. Next: ${next.words}` : "Step mode: nothing waits.";
    if (this.held.title === words) return;
    this.held.title = words;
    this.held.replaceChildren(
      next ? h("span", {}, h("b", {}, `${held} held`), " next ", h("b", {}, next.words)) : words,
      next?.effect ? h("span.meta", {}, ` ${next.effect}`) : "",
    );
  }

  get busyWords() {
    return "A cell is running. What happens meanwhile is shown when it ends or awaits.";
  }

  restore() {
    this.diagram.drawn = null;
    this.diagram.draw();
  }
}

function legend() {
  const keys = [["↑ ↓", "mail"], ["← →", "time"], ["Space", "play"], ["+ −", "zoom"]];
  return [
    ...keySigns().map(([tone, sign, word]) => h("span", { "data-k": tone }, sign, h("span", {}, word))),
    h("span.grow"),
    ...keys.map(([key, word]) => h("span.hint", {}, h("kbd", {}, key), word)),
  ];
}

export default () => widgetOf(Board, Switchboard);
