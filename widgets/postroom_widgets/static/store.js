// What the front end knows of one session: its rows, and what people typed that is on its way.

import { Outbox } from "./outbox.js";
import { Wire } from "./wire.js";

export class Store extends Wire {
  constructor(model) {
    super(model);
    this.notes = new Map(); // id of a mail from here -> why it waits, told when it was accepted
    this.outbox = new Outbox(
      `postroom:${this.notebook()}:${this.saved.room ?? ""}:${this.head.id ?? ""}:`,
      this.view,
      this.life,
    );
  }

  get active() {
    return this.head.status === "running" || this.head.calls > 0;
  }

  send(interrupt) {
    if (this.closed) return;
    const item = this.outbox.take(interrupt);
    // A busy kernel gets it later: until then it can be changed or taken back.
    if (item && this.link !== "busy") this.transmit(item);
    if (item && this.closed) this.outbox.edit(item.id);
    this.changed();
  }

  transmit(item) {
    const { id, text, interrupt, reply } = item;
    if (this.ask(id, { op: "send", id, text, interrupt, reply_to: reply?.id ?? null }))
      item.state = "sent";
    this.outbox.remember();
  }

  settled({ op, id, mail, words, note }) {
    if (op === "refused") this.outbox.refused(id, words);
    else {
      this.outbox.acknowledged(id, mail);
      if (note) this.noted(mail, note);
      this.arrived();
    }
  }

  noted(mail, note) {
    this.notes.set(mail, note);
    const row = [...this.rows.values()].find(({ id }) => id === mail);
    if (row) this.rows.set(row.key, { ...row, note });
  }

  put(row) {
    const note = this.notes.get(row.id);
    return super.put(note && row.add === undefined ? { ...row, note } : row);
  }

  renewed() {
    for (const item of this.outbox.owed(this.life)) this.transmit(item);
  }

  took() {
    this.arrived();
  }

  resumed() {
    for (const item of this.outbox.items) if (item.state === "held") this.transmit(item);
  }

  repeat() {
    for (const item of this.outbox.items) if (item.state === "sent") this.transmit(item);
  }

  idle() {
    if (!this.outbox.items.length) return;
    this.arrived();
    this.changed(); // words that are not confirmed come into sight after a while
  }

  arrived() {
    if (this.outbox.items.length)
      this.outbox.arrived(new Set([...this.rows.values()].map((row) => row.id)));
  }

  /** Which notebook this is, so that drafts of two notebooks never meet. */
  notebook() {
    try {
      return this.model.widget_manager.context.path;
    } catch {
      return globalThis.location?.pathname ?? "";
    }
  }
}
