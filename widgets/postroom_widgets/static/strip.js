// Every call that has not ended, at the foot of the feed: those that go on alone scroll away.

import { bar, elapsed, isOpen, lasts, share } from "./calls.js";
import { argumentLine, h, icon, plural, say } from "./kit.js";

const SHOWN = 4;

export class Strip {
  constructor(feed) {
    this.feed = feed;
    this.calls = [];
    this.next = 0;
    this.list = h("span.row");
    const show = h("button.link", { type: "button", onclick: () => this.show() }, "Show");
    this.root = h("div.strip", { role: "group", "aria-label": "open calls" }, this.list, show);
    this.root.hidden = true;
  }

  draw() {
    const { store, context } = this.feed;
    this.calls = context.closed ? [] : store.list().filter((row) => isOpen(row) && lasts(row));
    this.root.hidden = !this.calls.length;
    const more = this.calls.length - SHOWN;
    this.list.replaceChildren(
      ...this.calls.slice(0, SHOWN).map((row) => this.one(row)),
      ...(more > 0 ? [`and ${plural(more, "more call")}`] : []),
    );
  }

  one(row) {
    if (row.state === "deferred")
      return h(
        "span.one",
        {},
        this.sign("now", "shield"),
        h("b", {}, row.tool),
        h("span.args.clip", {}, argumentLine(row.args)),
        "waiting for you",
      );
    const known = share(row);
    return h(
      "span.one",
      {},
      this.sign("tool", "clock"),
      h("b", {}, row.tool),
      known !== null && bar(row),
      say(
        known !== null && `${known} %`,
        elapsed(this.feed.context, row) || (row.state === "pending" && "pending"),
      ),
    );
  }

  sign(tone, drawing) {
    return h("span.flag", { "data-k": tone }, icon(drawing));
  }

  /** Go to the first of them, then to the next. */
  show() {
    const row = this.calls[this.next % this.calls.length];
    this.next += 1;
    if (row) this.feed.jump(row.key);
  }
}
