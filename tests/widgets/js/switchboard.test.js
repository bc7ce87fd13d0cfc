// The switchboard on a page: what it shows, how it goes by keys, what it asks the kernel for.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import board from "../../../widgets/postroom_widgets/static/switchboard.js";
import { bar, line, mark, societyRows } from "./board_fakes.js";
import { FakeModel, later, press, texts } from "./fakes.js";

const HEAD = { name: "lab", sessions: 2, running: 0, unread: 0, tokens: 1200, at: "2026-03-02T10:02:14Z" };

let made;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("requestAnimationFrame", (call) => setTimeout(call, 0));
  made = null;
});

afterEach(() => {
  made?.close();
  document.body.replaceChildren();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

function open(rows = [], head = HEAD, snapshot = {}, dead = false) {
  const model = new FakeModel({ head, rows: [], ...snapshot });
  model.dead = dead;
  const definition = board();
  const close = definition.initialize({ model });
  const el = document.createElement("div");
  document.body.append(el);
  const leave = definition.render({ model, el });
  made = { close: () => (leave(), close()) };
  later(20);
  if (rows.length) model.rows(rows, { head, upto: 100 });
  return { el, model };
}

const small = [line("ann"), line("bob", 1, { agent: "writer", unread: 2, calls: 1, tokens: 1234 }), mark(1, "", "ann"), mark(2, "ann", "bob", { unread: true, expects: true, hops: 1 }), mark(3, "bob", "ann", { re: "m-0002", what: "reply", turn: 2 })];
const rows = (el) => [...el.querySelectorAll(".msg")];
const named = (el, words) => rows(el).find((row) => row.getAttribute("aria-label").includes(words));
const selected = (el) => el.querySelector(".msg.sel")?.dataset.key ?? null;
const click = (target) => {
  target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  later(20);
};

test("a room without sessions says how to begin", () => {
  const { el } = open([]);

  expect(el.querySelector(".empty").textContent).toContain("No sessions yet.");
  expect(el.querySelector(".sb").hidden).toBe(true);
});

test("every session stands in the tree with its unread mail, calls and tokens", () => {
  const { el } = open(small);

  expect(texts(el, ".tree .nm")).toEqual(["ann", "bob"]);
  const cells = [...el.querySelectorAll(".tree tbody tr")].map((row) => texts(row, "td:not(:first-child)"));
  expect(cells.map((row) => row.slice(0, 3))).toEqual([["–", "–", "–"], ["2", "1", "1.2k"]]);
});

test("what sessions cost stands beside their tokens, and nowhere while nothing has a price", () => {
  const { el, model } = open(small);
  expect(el.querySelector(".tree").classList.contains("priced")).toBe(false);
  expect(el.querySelector(".stats").textContent).not.toContain("$");

  const head = { ...HEAD, cost: 1.5174 };
  model.rows([line("bob", 1, { v: 101, agent: "writer", tokens: 1234, cost: 0.0174 })], { after: 100, upto: 101, head });

  expect(el.querySelector(".tree").classList.contains("priced")).toBe(true);
  const cells = [...el.querySelectorAll(".tree tbody tr")].map((row) => texts(row, "td:nth-child(n+4)"));
  expect(cells).toEqual([["–", "–"], ["1.2k", "$0.017"]]);
  expect(el.querySelector(".stats").textContent).toContain("$1.52");
});

test("every mark is one thing to go to, and says all there is to it", () => {
  const { el } = open(small);

  expect(rows(el)).toHaveLength(3);
  expect(el.querySelector("[role=list]").children).toHaveLength(3);
  expect(rows(el).filter((row) => row.getAttribute("tabindex") === "0")).toHaveLength(1);
  const told = named(el, "ann to bob").getAttribute("aria-label");
  expect(told).toContain("m-0002, expects reply, 1 hop, not read yet: letter 2");
});

test("an arrow that comes while the view is open appears without a word from anybody", () => {
  const { el, model } = open(small);
  model.rows([mark(4, "", "bob", { v: 101, label: "late" })], { after: 100, upto: 101, head: HEAD });

  expect(rows(el)).toHaveLength(4);
  expect(named(el, "late")).toBeTruthy();
});

test("what has not changed is not drawn again, so that the focus stays", () => {
  const { el, model } = open(small);
  const before = rows(el);
  before[1].focus();
  model.rows([mark(4, "", "bob", { v: 101 }), mark(2, "ann", "bob", { v: 102, turn: 1 })], { after: 100, upto: 102, head: HEAD });

  expect(rows(el).slice(0, 3)).toEqual(before);
  expect(document.activeElement).toBe(before[1]);
  expect(before[1].getAttribute("aria-label")).not.toContain("not read yet");
});

test("a click on an arrow shows its envelope, and links lead along the answers", () => {
  const { el } = open(small);
  click(named(el, "ann to bob"));

  const pane = el.querySelector(".detail");
  expect(texts(pane, ".chip")).toEqual(["ann", "bob"]);
  expect(pane.textContent).toContain("expects reply");
  expect(pane.textContent).toContain("hops1 of 16");
  expect(pane.textContent).toContain("queued, not delivered yet");
  const [answered] = pane.querySelectorAll(".link");
  expect(answered.textContent).toBe("m-0003");
  click(answered);
  expect(selected(el)).toBe("e:3");
  expect(pane.textContent).toContain("queued, delivered in turn 2");
  expect(el.querySelectorAll(".band.kin")).toHaveLength(1);
});

test("keys go from mail to mail and through time", () => {
  const { el } = open(small);
  const scroll = el.querySelector(".scroll");
  rows(el)[0].focus();
  press(document.activeElement, "ArrowDown");
  expect(selected(el)).toBe("e:2");
  press(document.activeElement, "ArrowUp");
  expect(selected(el)).toBe("e:1");

  press(document.activeElement, "ArrowLeft");
  expect(selected(el)).toBe("e:2");
  expect(scroll.querySelector(".veil")).toBeTruthy();
  press(document.activeElement, "Home");
  expect(selected(el)).toBe("e:1");
  expect(el.querySelector("input.play").value).toBe("0");
  press(document.activeElement, "End");
  expect(scroll.querySelector(".veil")).toBeNull();
});

test("no key of the diagram reaches the notebook", () => {
  const { el } = open(small);
  const heard = vi.fn();
  document.body.addEventListener("keydown", heard);
  for (const key of ["d", "ArrowDown", " "]) press(rows(el)[0], key);

  expect(heard).not.toHaveBeenCalled();
  document.body.removeEventListener("keydown", heard);
});

test("play goes through time by itself and ends at now", () => {
  const { el } = open(small);
  el.querySelector("[aria-label^='Play']").click();
  later(20);
  expect(selected(el)).toBe("e:1");
  later(500);
  expect(selected(el)).toBe("e:2");
  later(1200);

  expect(el.querySelector(".veil")).toBeNull();
  expect(el.querySelector("[aria-label^='Play']")).toBeTruthy();
});

test("a kind that is switched off goes, and comes back", () => {
  const { el } = open(small);
  const chip = () => [...el.querySelectorAll(".fchip")].find((each) => each.textContent.startsWith("sessions"));
  expect(chip().textContent).toBe("sessions2");
  click(chip());

  expect(chip().getAttribute("aria-pressed")).toBe("false");
  expect(rows(el)).toHaveLength(1);
  click(chip());
  expect(rows(el)).toHaveLength(3);
});

test("a session that is chosen shows its mail only, and chosen again all of it", () => {
  const { el } = open([...small, line("cay", 2), mark(4, "", "cay")]);
  const bob = () => [...el.querySelectorAll(".tree .s")].find((each) => each.textContent.includes("bob"));
  click(bob());
  expect(rows(el).map((row) => row.dataset.key)).toEqual(["e:2", "e:3"]);
  expect(bob().getAttribute("aria-pressed")).toBe("true");

  click(bob());
  expect(rows(el)).toHaveLength(4);
});

test("closed sessions are kept out of the tree until they are asked for", () => {
  const { el } = open([...small, line("old", 2, { status: "closed", closed: 9 })]);
  expect(texts(el, ".tree .nm")).toEqual(["ann", "bob"]);
  click(el.querySelector(".fold"));

  expect(texts(el, ".tree .nm")).toEqual(["ann", "bob", "old"]);
  expect(el.querySelector(".fold").textContent).toBe("Hide closed");
});

test("rows far out of view are not drawn", () => {
  const { el } = open(societyRows(12, 2000).map((row) => ({ ...row, v: 1 })));

  expect(rows(el).length).toBeGreaterThan(20);
  expect(rows(el).length).toBeLessThan(200);
  expect(rows(el)[0].getAttribute("aria-setsize")).toBe("2000");
});

test("zoom changes how close the rows are, within bounds", () => {
  const { el } = open(small);
  const height = () => Number(el.querySelector("svg.seq:not(.heads)").getAttribute("height"));
  const before = height();
  rows(el)[0].focus();
  press(document.activeElement, "+");
  expect(height()).toBeGreaterThan(before);
  for (let i = 0; i < 9; i++) press(document.activeElement, "-");
  expect(el.querySelector("[aria-label^='Rows closer']").disabled).toBe(true);
});

test("step mode tells what is held, and its button lets one letter through", () => {
  const stepping = { ...HEAD, stepping: true, held: 2, next: { id: "m-0002", words: "ann → bob: letter 2", effect: "starts a run of bob" } };
  const { el, model } = open(small, stepping);
  const gate = el.querySelector(".gate");
  expect(gate.hidden).toBe(false);
  expect(gate.textContent).toContain("2 held next ann → bob: letter 2");
  expect(el.querySelectorAll(".band.held")).toHaveLength(1);

  const through = gate.querySelector("button");
  click(through);
  expect(through.disabled).toBe(true);
  const [asked] = model.of("step");
  model.say({ op: "ack", id: asked.id, words: "let through" });
  expect(through.disabled).toBe(false);
  click(through);
  expect(model.of("step")).toHaveLength(2);
});

test("step mode is switched on and off from here", () => {
  const { el, model } = open(small);
  expect(el.querySelector(".gate").hidden).toBe(true);
  click(el.querySelector("[aria-pressed][title^='Hold mail']"));

  expect(model.of("stepping")).toMatchObject([{ on: true }]);
});

test("all sessions are paused, and resumed when all of them are", () => {
  const { el, model } = open(small);
  const button = el.querySelector("[aria-label='Pause all sessions']");
  click(button);
  expect(model.of("pause")).toHaveLength(1);

  model.say({ op: "ack", id: model.of("pause")[0].id });
  model.rows([line("ann", 0, { v: 101, status: "paused" }), line("bob", 1, { v: 102, status: "paused" })], { after: 100, upto: 102, head: HEAD });
  expect(button.getAttribute("aria-label")).toBe("Resume all sessions");
  click(button);
  expect(model.of("resume")).toHaveLength(1);
});

test("what the kernel refuses is said in words until something else is tried", () => {
  const { el, model } = open(small);
  click(el.querySelector("[aria-label='Pause all sessions']"));
  model.say({ op: "refused", id: model.of("pause")[0].id, words: "ann is closed" });
  const banner = el.querySelector(".banner[role=alert]:not([hidden])");
  expect(banner.textContent).toBe("ann is closed");

  click(el.querySelector("[aria-label='Pause all sessions']"));
  expect(banner.hidden).toBe(true);
});

test("a saved view shows what was saved, and nothing to press that cannot be", () => {
  const { el } = open([], HEAD, { rows: small }, true);

  expect(rows(el)).toHaveLength(3);
  expect(el.querySelector(".foot").textContent).toContain("%watch --all");
  expect(el.querySelectorAll(".tree button.s, button.fchip")).toHaveLength(0);
  expect(el.querySelector(".controls").hidden).toBe(true);
});

test("a gap in what comes is asked for again", () => {
  const { el, model } = open(small);
  later(400);
  const asked = model.of("hello").length;
  model.rows([mark(9, "", "ann", { v: 205 })], { after: 204, upto: 205, head: HEAD });

  expect(model.of("hello")).toHaveLength(asked + 1);
  expect(model.of("hello").at(-1)).toMatchObject({ after: 100 });
  expect(rows(el)).toHaveLength(3);
});

test("what somebody wrote is text wherever it stands", () => {
  const evil = "<img src=x onerror=alert(1)>";
  const { el } = open([line("ann", 0, { name: evil, agent: evil }), mark(1, "", "ann", { label: evil }), mark(2, "ann", "ann", { what: "call", id: "call_1", tone: "tool", label: evil, text: evil }), bar("call_1", "ann", 2)]);
  for (const row of rows(el)) click(row);

  expect(el.querySelector("img")).toBeNull();
});
