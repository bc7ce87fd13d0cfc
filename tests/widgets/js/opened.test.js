// Sessions opened from a view: a live view of their own below it, in the same output.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import board from "../../../widgets/postroom_widgets/static/switchboard.js";
import { line, mark } from "./board_fakes.js";
import { call, FakeModel, HEAD, later, mail, press, texts, widget } from "./fakes.js";

let model;
let view;
let el;
let manager;

/** What the page's manager of widgets does: it knows models by id, and makes views of them. */
class Manager {
  constructor() {
    this.models = new Map();
    this.views = [];
  }

  async get_model(id) {
    if (!this.models.has(id)) throw new Error("widget model not found");
    return this.models.get(id);
  }

  async create_view(child) {
    const undo = widget(child);
    const place = undo.open();
    place.remove();
    const made = { el: place, removed: false };
    made.remove = () => {
      made.removed = true;
      place.close();
      undo.close();
      place.remove();
    };
    this.views.push(made);
    return made;
  }
}

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-03-02T10:05:00Z") });
  sessionStorage.clear();
  manager = new Manager();
  model = new FakeModel();
  model.widget_manager = manager;
  view = widget(model);
  el = view.open();
  model.rows([mail(1, { tone: "agent", name: "coder", from: "s-0003", of: "child", state: "delivered", turn: 1, o: [1, 1] })]);
});

afterEach(() => {
  view.close();
  document.body.replaceChildren();
  vi.useRealTimers();
});

const chip = () => el.querySelector(".pr.session button.chip");
const below = () => [...el.querySelectorAll(":scope > .pr-opened > section")];
const settled = () => vi.advanceTimersByTimeAsync(200);

/** Answer the last question for a session, with the model of its view. */
async function answer(id = "child-1", more = {}) {
  const child = new FakeModel({ view: id, head: { ...HEAD, id: "s-0003", name: "coder", ...more } });
  child.widget_manager = manager;
  manager.models.set(id, child);
  model.say({ op: "ack", id: model.of("open").at(-1).id, view: id });
  await settled();
  return child;
}

test("a session that is named is opened below, as a view of its own", async () => {
  expect(chip().textContent).toBe("coder child");
  expect(chip().title).toBe("Open coder");
  expect(chip().getAttribute("aria-expanded")).toBe("false");
  chip().click();

  expect(model.of("open")).toEqual([{ op: "open", id: expect.any(String), session: "s-0003" }]);
  expect(chip().getAttribute("aria-expanded")).toBe("true");
  expect(below()[0].getAttribute("aria-label")).toBe("coder, opened from session rev");
  expect(texts(el, ".opening .words")).toEqual(["Opening coder …"]);
  expect(document.activeElement.getAttribute("aria-label")).toBe("Close coder");

  await answer();
  expect(texts(el, ".opening .words")).toEqual([""]);
  expect(texts(below()[0], ".pr.session h2")).toEqual(["coder"]);
  expect(below()[0].querySelector("textarea").placeholder).toBe("Write to coder");
});

test("pressed again it closes, and hears no more", async () => {
  chip().click();
  const child = await answer();
  chip().click();

  expect(below()).toEqual([]);
  expect(manager.views[0].removed).toBe(true);
  expect(child.of("bye")).toHaveLength(1);
  expect(chip().getAttribute("aria-expanded")).toBe("false");
});

test("Escape closes it and goes back to what opened it, unless it means something inside", async () => {
  chip().click();
  const child = await answer();
  child.rows([mail(1, { text: "hello", state: "delivered", o: [1, 1] })]);
  const box = below()[0].querySelector("textarea");
  below()[0].querySelector(".reply").click();
  expect(document.activeElement).toBe(box);
  press(box, "Escape");
  expect(below()).toHaveLength(1); // it only dropped the reply

  press(box, "Escape");
  expect(below()).toEqual([]);
  expect(document.activeElement).toBe(chip());
});

test("the button that closes it hears Escape too, and no key gets to the notebook", async () => {
  const heard = vi.fn();
  document.body.addEventListener("keydown", heard);
  chip().click();
  await answer();
  press(document.activeElement, "d");
  press(document.activeElement, "Escape");
  document.body.removeEventListener("keydown", heard);

  expect(below()).toEqual([]);
  expect(heard).not.toHaveBeenCalled();
});

test("a session that nobody knows says so", async () => {
  chip().click();
  model.say({ op: "refused", id: model.of("open")[0].id, words: "no session 's-0003'." });
  await settled();

  const words = below()[0].querySelector("[role=alert]");
  expect(words.textContent).toBe("no session 's-0003'.");
  below()[0].querySelector("button").click();
  expect(below()).toEqual([]);
});

test("a front end that cannot show it in place says how else to see it", async () => {
  manager.create_view = () => Promise.reject(new Error("not here"));
  chip().click();
  await answer();

  expect(below()[0].querySelector("[role=alert]").textContent).toBe("Run %watch coder in a cell.Copy");
});

test("a view whose model is still on its way is waited for", async () => {
  chip().click();
  const late = new FakeModel({ view: "late", head: { ...HEAD, name: "coder" } });
  model.say({ op: "ack", id: model.of("open")[0].id, view: "late" });
  await settled();
  expect(texts(el, ".opening .words")).toEqual(["Opening coder …"]);
  manager.models.set("late", late);
  await settled();

  expect(texts(below()[0], ".pr.session h2")).toEqual(["coder"]);
});

test("one that was closed before its answer came stays closed", async () => {
  chip().click();
  chip().click();
  await answer();

  expect(below()).toEqual([]);
  expect(manager.views[0].removed).toBe(true);
});

test("when the kernel is gone nothing waits for an answer, and names are no buttons", async () => {
  chip().click();
  el.classList.add("jupyter-widgets-disconnected");
  model.handlers.get("comm_live_update").forEach((told) => told());
  await settled();

  expect(below()[0].querySelector("[role=alert]").textContent).toContain("Run %watch coder");
  expect(chip()).toBe(null);
  expect(texts(el, ".rows .chip")).toEqual(["coder child"]);
});

test("a letter that was sent, and a call that works in a session, lead there", () => {
  model.rows(
    [
      call("call_0001", 2, { tool: "send-message", state: "completed", sent: { mail: "m-1", to: "s-0003", name: "coder", seq: 1 } }),
      call("call_0002", 3, { tool: "spawn-session", state: "running", child: { id: "s-0005", name: "kid" }, o: [2, 2 ** 40 + 2] }),
    ],
    { after: 1 },
  );
  for (const name of ["coder", "kid child"])
    [...el.querySelectorAll(".call button.chip")].find((found) => found.textContent === name).click();

  expect(model.of("open").map(({ session }) => session)).toEqual(["s-0003", "s-0005"]);
  expect(below()).toHaveLength(2);
});

test("what was opened moves with its view, and ends with it", async () => {
  chip().click();
  await answer();
  const again = document.createElement("div");
  el.remove();
  document.body.append(again);
  const leave = view.definition.render({ model, el: again });
  later(20);
  expect(texts(again, ":scope > .pr-opened h2")).toEqual(["coder"]);

  leave();
  expect(manager.views[0].removed).toBe(true);
  expect(again.childElementCount).toBe(0);
});

test("a switchboard opens who got a letter, who sent it, and who is chosen in the tree", () => {
  const other = new FakeModel({ head: { name: "lab", sessions: 2 }, rows: [] });
  other.widget_manager = manager;
  const definition = board();
  const close = definition.initialize({ model: other });
  const place = document.createElement("div");
  document.body.append(place);
  const leave = definition.render({ model: other, el: place });
  later(20);
  other.rows([line("ann"), line("bob", 1), mark(1, "", "ann"), mark(2, "ann", "bob"), mark(3, "ann", "ann", { what: "failed" })], {
    head: { name: "lab", sessions: 2 },
    upto: 100,
  });
  later(40);
  const choose = (n) => {
    place.querySelectorAll(".msg")[n].dispatchEvent(new MouseEvent("click", { bubbles: true }));
    later(20);
  };
  choose(1);
  expect(texts(place, ".detail [data-opens]")).toEqual(["ann", "bob", "Open bob"]);
  [...place.querySelectorAll(".detail .btn")].at(-1).click();
  expect(other.of("open")).toMatchObject([{ session: "bob" }]);
  expect(place.querySelector(".pr-opened > section").getAttribute("aria-label")).toBe("bob, opened from switchboard");
  expect([...place.querySelectorAll("[data-opens=bob]")].map((b) => b.getAttribute("aria-expanded"))).toEqual(["true", "true"]);
  choose(0);
  expect(texts(place, ".detail [data-opens]")).toEqual(["ann", "Open ann"]);
  choose(2);
  expect(texts(place, ".detail [data-opens]")).toEqual(["ann", "Open ann"]);

  expect(place.querySelector(".chosen").hidden).toBe(true);
  place.querySelectorAll(".tree .s")[1].click();
  later(20);
  expect(texts(place, ".chosen button")).toEqual(["Open bob"]);
  place.querySelector(".chosen button").click();
  expect(place.querySelectorAll(".pr-opened > section")).toHaveLength(0);
  leave();
  close();
});
