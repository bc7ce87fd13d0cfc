// The send box. A refusal stays in it with its words; a draft outlives whatever happens.

import { h, icon } from "./kit.js";

const MAX_HEIGHT_PX = 8 * 20 + 14;

export class Composer {
  constructor(store, sent) {
    this.store = store;
    this.sent = sent;
    this.back = 0; // how far up in the history
    this.area = h("textarea", { rows: 2, spellcheck: "true" });
    this.reply = h("div.rto");
    this.error = h("div.refusal", { role: "alert" });
    this.urgent = h(
      "button.btn.tone",
      { type: "button", "data-k": "now", onclick: () => this.send(true) },
      icon("bolt", "fill"),
      "Send as interrupt",
    );
    this.button = h("button.btn.solid", { type: "submit" }, icon("send"), "Send");
    const key = (name) => h("kbd", {}, name);
    const hint = h(
      "span.hint",
      {},
      key("Enter"),
      " send ",
      key("Alt Enter"),
      " interrupt",
      h("span.opt", {}, " ", key("Shift Enter"), " new line ", key("↑"), " history"),
    );
    this.root = h(
      "form.comp",
      { onsubmit: (event) => this.submit(event) },
      this.reply,
      this.area,
      this.error,
      h("div.ctl", {}, hint, this.urgent, this.button),
    );
    this.area.addEventListener("input", () => this.typed());
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("focus", () => store.probe());
  }

  draw() {
    const { store } = this;
    const { text, reply, error } = store.outbox.draft;
    const { name } = store.head;
    this.area.setAttribute("aria-label", `message to ${name}`);
    this.area.setAttribute("placeholder", `Write to ${name}`);
    if (this.area.value !== text) this.area.value = text;
    this.area.readOnly = store.closed;
    this.urgent.disabled = this.button.disabled = store.closed;
    this.error.textContent = error ? `Not sent: ${error}` : "";
    this.error.hidden = !error;
    this.drawReply(reply);
    this.grow();
  }

  drawReply(reply) {
    this.reply.hidden = !reply;
    if (reply?.id === this.replying) return;
    this.replying = reply?.id;
    const drop = h(
      "button.mini",
      { type: "button", "aria-label": "not a reply", onclick: () => this.drop() },
      icon("x"),
    );
    this.reply.replaceChildren(
      ...(reply
        ? [
            icon("reply"),
            h(
              "span.clip",
              {},
              `Reply to ${reply.name} `,
              h("span.id", {}, reply.id),
              ` · ${reply.text}`,
            ),
            drop,
          ]
        : []),
    );
  }

  grow() {
    if (!this.area.isConnected || this.grown === this.area.value) return;
    this.grown = this.area.value;
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(MAX_HEIGHT_PX, this.area.scrollHeight + 2)}px`;
  }

  typed() {
    this.back = 0;
    this.store.outbox.write(this.area.value);
    this.store.changed();
  }

  submit(event) {
    event.preventDefault();
    this.send(false);
  }

  send(interrupt) {
    this.back = 0;
    this.store.send(interrupt);
    this.sent();
    this.area.focus();
  }

  drop() {
    this.store.outbox.replyTo(null);
    this.store.changed();
    this.area.focus();
  }

  key(event) {
    if (event.isComposing) return; // Enter ends the word, not the message
    const { key } = event;
    if (key === "Enter" && !event.shiftKey) this.send(event.altKey);
    else if (key === "Escape" && this.store.outbox.draft.reply) this.drop();
    else if (key === "ArrowUp" && (this.back || !this.area.value)) this.recall(1);
    else if (key === "ArrowDown" && this.back) this.recall(-1);
    else return;
    event.preventDefault();
  }

  /** Walk through what was sent from here, the newest first. */
  recall(step) {
    const said = this.store
      .list()
      .filter((row) => row.kind === "mail" && row.name === "you" && row.text && !row.control);
    const back = Math.max(0, Math.min(said.length, this.back + step));
    if (back === this.back) return;
    this.store.outbox.write(back ? said[said.length - back].text : "");
    this.store.changed();
    this.back = back;
  }
}
