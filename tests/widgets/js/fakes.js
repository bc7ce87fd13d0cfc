// A model without a browser behind it and a kernel that answers as it is told.

import { vi } from "vitest";
import session from "../../../widgets/postroom_widgets/static/session.js";

export const HEAD = {
  id: "s-0002",
  name: "rev",
  agent: "reviewer",
  model: "scripted",
  status: "idle",
  tokens: 2418,
};
export const FAR = 2 ** 50;

export class FakeModel {
  constructor(snapshot = {}) {
    this.snapshot = {
      view: "v1",
      room: "lab",
      life: "life1",
      head: HEAD,
      rows: [],
      earlier: 0,
      ...snapshot,
    };
    this.sent = [];
    this.dead = false;
    this.handlers = new Map();
  }

  get(name) {
    return name === "snapshot" ? this.snapshot : undefined;
  }

  on(name, handler) {
    this.handlers.set(name, [...(this.handlers.get(name) ?? []), handler]);
  }

  off(name, handler) {
    this.handlers.set(
      name,
      (this.handlers.get(name) ?? []).filter((other) => other !== handler),
    );
  }

  send(message) {
    if (this.dead) throw new Error("Cannot send");
    this.sent.push(message);
  }

  /** What the kernel says. */
  say(message) {
    for (const handler of this.handlers.get("msg:custom") ?? []) handler(message);
    vi.advanceTimersByTime(20);
  }

  rows(
    rows,
    { after = 0, upto = Math.max(after, ...rows.map((row) => row.v)), head = HEAD, ...more } = {},
  ) {
    this.say({
      op: "rows",
      life: "life1",
      after,
      upto,
      left: 0,
      earlier: 0,
      top: [0, 0],
      head,
      rows,
      ...more,
    });
  }

  /** The messages of one kind the front end sent. */
  of(op) {
    return this.sent.filter((message) => message.op === op);
  }
}

/** A widget as anywidget would run it: `open()` makes a view of it in a place of its own. */
export function widget(model) {
  const definition = session();
  const undo = definition.initialize({ model });
  const open = (parent = document.body) => {
    const el = document.createElement("div");
    parent.append(el);
    el.close = definition.render({ model, el });
    vi.advanceTimersByTime(20);
    return el;
  };
  return { open, close: undo, definition };
}

export const mail = (seq, more = {}) => ({
  key: `m:${seq}`,
  v: seq,
  o: [FAR, seq],
  kind: "mail",
  id: `m-000${seq}`,
  seq,
  at: "2026-03-02T10:02:14+00:00",
  tone: "user",
  name: "you",
  text: `letter ${seq}`,
  state: "queued",
  ...more,
});

export const turn = (index, v, more = {}) => ({
  key: `t:${index}`,
  v,
  o: [index, 2 ** 40],
  kind: "turn",
  index,
  text: "",
  ...more,
});

export const call = (id, v, more = {}) => ({
  key: `c:${id}`,
  v,
  o: [2, 2 ** 40 + 1],
  kind: "call",
  id,
  turn: 2,
  tool: "run_tests",
  args: { suite: "fast" },
  state: "running",
  ...more,
});

export const texts = (root, selector) =>
  [...root.querySelectorAll(selector)].map((element) => element.textContent);

export function type(el, text) {
  const area = el.querySelector("textarea");
  area.value = text;
  area.dispatchEvent(new Event("input", { bubbles: true }));
  return area;
}

export function press(target, key, more = {}) {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  target.dispatchEvent(event);
  vi.advanceTimersByTime(20);
  return event;
}

export function later(ms) {
  vi.advanceTimersByTime(ms);
}
