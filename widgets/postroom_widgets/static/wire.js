// The link of a view to its kernel: it keeps the kernel's rows complete, notices gaps, and says what
// has become of the link. One per model, shared by all its views.

import { byPlace } from "./kit.js";

const UNANSWERED_MS = 1000; // a question open for so long: a cell holds the loop
const SILENT_MS = 2500; // a running session that says nothing for so long is asked
const LOST_MS = 4000; // a question open for so long: the front end is asked if the kernel knows us
const ASK_AGAIN_MS = 300; // between two questions for rows that were lost on the way
const TICK_MS = 250;

export class Wire {
  constructor(model) {
    this.model = model;
    const saved = model.get("snapshot") ?? {};
    this.saved = saved;
    this.view = saved.view ?? "";
    this.life = saved.life;
    this.head = saved.head ?? { name: "", status: "ready" };
    this.rows = new Map((saved.rows ?? []).map((row) => [row.key, row]));
    this.earlier = saved.earlier ?? 0; // rows above the first one here
    this.top = null; // the place of the first one here
    this.version = 0; // every change up to here is in
    this.live = false; // the rows are the kernel's, not the notebook's
    this.link = "opening"; // opening, live, busy, gone (was live), saved (never was), over
    this.words = ""; // why it is over
    this.catching = null; // { got, total, since } while many rows come in
    this.orders = new Map(); // key of a row, or "" for the whole -> { id, op, words }
    this.listeners = new Map(); // a view's callback -> its element
    this.questions = new Map(); // id -> when it was first asked
    this.requests = new Map(); // id of a question that is answered with more than yes -> who is told
    this.heardAt = 0;
    this.retriedAt = 0;
    this.helloAt = 0;
    this.name = Math.random().toString(36).slice(2, 8);
    this.counter = 0;
    this.receive = this.receive.bind(this);
    model.on("msg:custom", this.receive);
    model.on("comm_live_update", () => queueMicrotask(() => this.probe()));
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  // What a kind of view does besides: words of its own that are on their way.
  renewed() {} // the rows of another kernel life begin
  took() {} // rows came in
  resumed() {} // the loop runs again
  repeat() {} // answers may have been lost
  idle() {} // four times a second
  settled() {} // a question that was no button's was answered

  /** A fresh id for something said to the kernel; no other view's is equal. */
  id() {
    return `view-${this.name}-${this.counter++}`;
  }

  /** Whether something goes on, so that the kernel should be heard from. */
  get active() {
    return false;
  }

  close() {
    clearInterval(this.timer);
    this.model.off("msg:custom", this.receive);
  }

  subscribe(listener, element) {
    this.listeners.set(listener, element);
    if (this.listeners.size === 1) this.hello();
    return () => {
      this.listeners.delete(listener);
      if (!this.listeners.size) this.say({ op: "bye" });
    };
  }

  changed() {
    this.sorted = null;
    for (const listener of this.listeners.keys()) listener();
  }

  /** The rows from top to bottom. */
  list() {
    this.sorted ??= [...this.rows.values()].filter((row) => row.kind !== "gone").sort(byPlace);
    return this.sorted;
  }

  get closed() {
    return this.link === "gone" || this.link === "saved" || this.link === "over";
  }

  // ── To the kernel ──

  /** Send a message; false if nobody is there to get it. */
  say(message) {
    try {
      if (this.cut()) throw new Error("no comm");
      this.model.send(message);
      return true;
    } catch {
      this.lose();
      return false;
    }
  }

  ask(id, message) {
    if (!this.questions.has(id)) this.questions.set(id, Date.now());
    return this.say(message);
  }

  hello() {
    this.helloAt = Date.now();
    const [after, top] = this.live ? [this.version, this.top] : [0, null];
    this.ask("hello", { op: "hello", after, top });
  }

  /** See whether the kernel still answers; nothing is asked twice. */
  probe() {
    if (this.link === "over") return;
    if (this.closed) this.hello();
    else if (this.cut()) this.lose();
    else if (!this.questions.size) this.ask("ping", { op: "ping", id: "ping" });
  }

  older(rows) {
    this.say({ op: "older", count: rows });
  }

  /** Ask for something; `told` gets the answer, or null when nobody will give one. */
  request(op, more, told) {
    const id = this.id();
    this.requests.set(id, told);
    if (!this.ask(id, { op, id, ...more })) this.told(id, null);
  }

  /** Give whoever made a request its answer; false if nobody did. */
  told(id, answer) {
    const told = this.requests.get(id);
    this.requests.delete(id);
    this.questions.delete(id);
    told?.(answer);
    return Boolean(told);
  }

  /** Say what a button means; false if nobody hears it. `key` is whose button it is. */
  order(op, key = "", more = {}) {
    const id = this.id();
    const heard = this.ask(id, { op, id, ...more });
    if (heard) this.orders.set(key, { id, op });
    this.changed();
    return heard;
  }

  /** Take the answer to a button; what was refused is told where it was pressed. */
  decided(id, op, words) {
    for (const [key, order] of this.orders) {
      if (order.id !== id) continue;
      if (op === "refused") this.orders.set(key, { op: order.op, words });
      else if (!key) this.orders.delete(key);
      return true;
    }
    return false;
  }

  /** Buttons whose answer may never come can be pressed again. */
  giveUp() {
    for (const [key, { id, words }] of this.orders) {
      if (words) continue;
      this.questions.delete(id);
      this.orders.delete(key);
    }
    for (const id of [...this.requests.keys()]) this.told(id, null);
  }

  // ── From the kernel ──

  receive(message) {
    this.heardAt = Date.now();
    if (this.link === "gone" || this.link === "saved") this.link = "opening"; // somebody is there after all
    const { op, id } = message ?? {};
    if (op === "rows") this.take(message);
    else if (op === "older") this.above(message);
    else if (op === "ack" || op === "refused") this.answered(message);
    else if (op === "over") Object.assign(this, { link: "over", words: message.words });
    else if (op === "pong") this.questions.delete(id);
    if (message.upto > this.version) this.again();
    this.settle();
    this.changed();
  }

  take(message) {
    this.questions.delete("hello");
    if (message.life !== this.life) this.live = false; // rows of a kernel that is gone
    if (!this.live) {
      if (message.after > 0) return this.again();
      Object.assign(this, { live: true, life: message.life, version: 0 });
      this.rows.clear();
      this.renewed();
    }
    if (message.after > this.version) return this.again();
    if (!message.rows.every((row) => this.put(row))) return this.again();
    this.version = Math.max(this.version, message.upto);
    this.head = message.head;
    this.below(message.top);
    this.above({ ...message, rows: [] });
    this.progress(message);
    this.took(message);
  }

  above({ rows, earlier, top }) {
    for (const row of rows) this.put(row);
    Object.assign(this, { earlier, top });
  }

  /** Let go of rows above `top`: when too much came at once, the kernel begins anew further down. */
  below(top) {
    if (!this.top || byPlace({ o: top }, { o: this.top }) <= 0) return;
    for (const [key, row] of this.rows) if (byPlace(row, { o: top }) < 0) this.rows.delete(key);
  }

  /** Lay a row in; false if a part of it is missing. */
  put(row) {
    const old = this.rows.get(row.key);
    if (old && old.v >= row.v) return true;
    // The button did what it said; a refusal stays to be read.
    if (old && row.state !== old.state && !this.orders.get(row.key)?.words)
      this.orders.delete(row.key);
    if (row.add === undefined) this.rows.set(row.key, row);
    else if (old?.v === row.base)
      this.rows.set(row.key, { ...old, v: row.v, text: (old.text ?? "") + row.add });
    else return false;
    return true;
  }

  progress({ rows, left }) {
    if (!left) this.catching = null;
    else {
      const got = (this.catching?.got ?? 0) + rows.length;
      this.catching = { got, total: got + left, since: this.catching?.since ?? Date.now() };
    }
  }

  /** Something was lost on the way: ask for it, a few times a second at most. */
  again() {
    this.missing = Date.now() - this.helloAt < ASK_AGAIN_MS;
    if (!this.missing) this.hello();
  }

  answered(message) {
    this.questions.delete(message.id);
    if (this.told(message.id, message)) return;
    if (!this.decided(message.id, message.op, message.words)) this.settled(message);
  }

  // ── The link ──

  /** Whether the front end says that the model has no kernel behind it. */
  cut() {
    return [...this.listeners.values()].some((element) =>
      element?.classList.contains("jupyter-widgets-disconnected"),
    );
  }

  lose() {
    if (this.closed) return;
    this.link = this.live ? "gone" : "saved";
    this.giveUp();
    this.questions.clear();
    this.changed();
  }

  /** Decide between live and busy by the oldest open question. */
  settle() {
    if (this.closed) return;
    const was = this.link;
    if (this.waited() > UNANSWERED_MS) this.link = "busy";
    else if (this.live) this.link = "live";
    if (was === this.link) return;
    // The loop runs again: what was held goes out, in order.
    if (was === "busy") this.resumed();
    this.changed();
  }

  waited() {
    return this.questions.size ? Date.now() - Math.min(...this.questions.values()) : 0;
  }

  tick() {
    const now = Date.now();
    if (this.closed || !this.listeners.size) return;
    if (this.missing) this.again();
    if (this.link === "live" && this.active && now - this.heardAt > SILENT_MS) this.probe();
    this.settle();
    this.idle();
    if (this.link !== "busy") return;
    // It speaks but leaves a question open: the answer may have been lost.
    const spoke = now - this.waited() < this.heardAt;
    if (spoke && now - this.retriedAt > LOST_MS) this.retry(now);
    if (!spoke && this.waited() > LOST_MS && now - this.retriedAt > LOST_MS) this.checkKernel(now);
  }

  retry(now) {
    this.retriedAt = now;
    if (this.questions.has("hello")) this.hello();
    if (this.questions.has("ping")) this.say({ op: "ping", id: "ping" });
    this.repeat();
    this.giveUp();
  }

  /** Ask an idle kernel whether it knows us. One that was restarted does not. */
  async checkKernel(now) {
    this.retriedAt = now;
    try {
      const { kernel } = this.model.widget_manager;
      if (kernel.status !== "idle") return;
      const { content } = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
      if (content.comms && !(this.view in content.comms)) this.lose();
    } catch {
      // a front end that cannot tell: the question stays open
    }
  }
}
