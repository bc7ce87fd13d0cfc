// The sessions of a room as a tree: what each is doing, its unread mail, running calls, tokens and, where it is known, cost.

import { count, h, icon, money, plural, settle } from "./kit.js";
import { opens } from "./opened.js";

/** What a session is doing, in a word or two; the same as in the saved view. */
export function lineWords({ asks, needs, status }) {
  if (needs) return needs;
  return (status === "idle" || status === "waiting") && asks ? "needs you" : status;
}

/** Which sign stands before the word; the same as in the listing of sessions. */
export function dotOf({ asks, calls, end, status }) {
  if (status === "waiting") return asks || !calls ? "waiting" : "running";
  if (status === "idle" && asks) return "waiting";
  if (status === "capped") return "paused";
  if (status === "closed" || (status === "idle" && end === "stopped")) return "stopped";
  return status;
}

const CALM = new Set(["running", "idle", "ready"]);

export class Tree {
  constructor(choose, opened) {
    this.choose = choose;
    this.opened = opened;
    this.chosen = h("div.chosen"); // the way to the session that is chosen
    this.withClosed = false;
    this.body = h("tbody");
    this.cells = new Map();
    this.fold = h("button.link.fold", { type: "button", onclick: () => this.toggle() });
    const sign = (drawing, word) =>
      h("th", { scope: "col", title: word }, icon(drawing), h("span.sr", {}, word));
    this.root = h(
      "div.tree",
      {},
      h(
        "table",
        { "aria-label": "sessions" },
        h("colgroup", {}, [1, 2, 3, 4, 5].map(() => h("col"))),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "Session"),
            sign("mail", "unread mail"),
            sign("tool", "running calls"),
            h("th", { scope: "col" }, "Tokens"),
            h("th", { scope: "col" }, "Cost"),
          ),
        ),
        this.body,
      ),
      this.chosen,
      this.fold,
    );
  }

  drawChosen({ focus, saved, gone }) {
    const line = this.log.tree.find((each) => each.line.id === focus)?.line;
    const sign = line && !saved && !gone ? `${line.id} ${line.name}` : "";
    this.chosen.hidden = !sign;
    if (sign && sign !== this.chosenSign) {
      const words = `Open ${line.name}`;
      this.chosen.replaceChildren(h("button.btn.small", opens({ opened: this.opened }, line.id, line.name), words));
    }
    this.chosenSign = sign;
  }

  toggle() {
    this.withClosed = !this.withClosed;
    this.draw(this.log, this.state);
  }

  draw(log, state) {
    Object.assign(this, { log, state });
    const closed = log.tree.filter(({ line }) => line.status === "closed").length;
    this.root.classList.toggle("priced", log.tree.some(({ line }) => line.cost > 0));
    const open = log.tree.filter(({ line }) => this.withClosed || line.status !== "closed");
    const kept = new Map();
    for (const { line, depth } of open) {
      const { focus, ...rest } = state;
      const sign = JSON.stringify([line, depth, rest]);
      const cell = this.cells.get(line.id) ?? { sign: "", row: h("tr") };
      if (cell.sign !== sign) this.fill(cell, line, depth, state);
      cell.sign = sign;
      const chosen = focus === line.id;
      cell.row.classList.toggle("sel", chosen);
      cell.button?.setAttribute("aria-pressed", String(chosen));
      kept.set(line.id, cell);
    }
    this.cells = kept;
    settle(this.body, [...kept.values()].map(({ row }) => row));
    this.drawChosen(state);
    this.fold.hidden = !closed;
    const words = this.withClosed ? "Hide closed" : `Show ${plural(closed, "closed session")}`;
    if (this.fold.textContent !== words) this.fold.textContent = words;
  }

  /** Draw a session in its row; the row and its button stay, and with them the focus. */
  fill(cell, line, depth, { saved, gone }) {
    const { row } = cell;
    const dot = gone ? "stopped" : dotOf(line);
    const words = lineWords(line);
    const calm = CALM.has(words) || (words === "waiting" && line.calls);
    const told = calm ? (line.agent === line.name ? "" : line.agent) : words;
    const none = () => h("span.z", { "aria-hidden": "true" }, "–");
    if (!cell.place || saved !== (cell.place.tagName === "SPAN")) {
      const choose = () => this.choose(this.state.focus === line.id ? null : line.id);
      cell.button = saved ? null : h("button.s", { type: "button", onclick: choose });
      cell.place = cell.button ?? h("span.s");
      cell.numbers = [h("td"), h("td"), h("td"), h("td")];
      row.replaceChildren(h("td", {}, cell.place), ...cell.numbers);
    }
    row.classList.toggle("over", line.status === "closed");
    cell.place.style.setProperty("--d", depth);
    cell.place.title = `${line.name}, ${line.id}: ${words}`;
    cell.place.replaceChildren(
      h(`span.st.${dot}${saved || gone ? ".still" : ""}`),
      h("span.tx", {}, h("span.nm", {}, line.name), told ? h("span.ag", {}, told) : ""),
      h("span.sr", {}, calm ? words : ""),
    );
    const shown = [
      line.unread ? h("span.badge", {}, line.unread) : none(),
      line.calls || none(),
      line.tokens ? count(line.tokens) : none(),
      money(line.cost) || none(),
    ];
    cell.numbers.forEach((td, i) => td.replaceChildren(shown[i]));
  }
}
