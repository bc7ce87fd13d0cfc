import axe from "axe-core";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { expiresIn } from "../../../widgets/postroom_widgets/static/cards.js";
import inbox from "../../../widgets/postroom_widgets/static/inbox.js";
import { FakeModel, later, press, texts } from "./fakes.js";

const NOW = "2026-03-02T10:05:00Z";
const TOP = { agent: "", room: "lab", news: 2, asks: 2, permissions: [], at: NOW };

const asks = (n, more = {}) => ({
  key: `e:coder:${n}`,
  v: n,
  o: [n, n],
  kind: "card",
  face: "approval",
  tone: "now",
  entry: `card-ap-000${n}`,
  approval: `ap-000${n}`,
  id: `ap-000${n}`,
  seq: n,
  agent: "coder",
  at: NOW,
  name: "coder",
  title: "coder wants to run",
  tool: "deploy",
  args: { target: "staging", nodes: 5 },
  why: "touches what people use",
  path: [
    ["user", "you"],
    ["agent", "lead"],
    ["agent", "coder"],
    ["call", "call_0001"],
  ],
  always: ["args", "tool", "agent"],
  expires: "2026-03-03T10:00:00Z",
  acts: ["answer"],
  state: "open",
  fresh: true,
  ...more,
});

const notice = (n, face, more = {}) =>
  asks(n, { face, tone: "sys", approval: null, args: null, expires: null, always: null, title: "ops failed", acts: ["resume", "open", "close"], name: "ops", session: "s-0004", ...more });

const done = (row, outcome, more = {}) => ({ ...row, state: "done", outcome, end: "ok", fresh: false, ended: NOW, ...more });

let model;
let view;
let el;

function start(snapshot = {}, dead = false) {
  model = new FakeModel({ head: TOP, rows: [], ...snapshot });
  model.dead = dead;
  view = inbox();
  const undo = view.initialize({ model });
  el = document.createElement("div");
  document.body.append(el);
  const close = view.render({ model, el });
  later(20);
  return () => {
    close();
    undo();
  };
}

let stop;
beforeEach(() => {
  vi.useFakeTimers({ now: new Date(NOW) });
  stop = start();
});
afterEach(() => {
  stop();
  document.body.replaceChildren();
  vi.useRealTimers();
});

let version = 0;
beforeEach(() => (version = 0));

/** Lay rows in, as the kernel would. */
function show(rows, head = TOP) {
  const after = version;
  const numbered = rows.map((row) => ({ ...row, v: ++version }));
  model.rows(numbered, { after, upto: version, head });
  later(20);
}

const cards = () => [...el.querySelectorAll(".card")];
const button = (words, at = 0) =>
  [...cards()[at].querySelectorAll("button")].find((one) => one.textContent.startsWith(words));
const click = (words, at) => {
  button(words, at).click();
  later(20);
};
const field = (name, at = 0) => cards()[at].querySelector(`[aria-label="${name}"]`);
const fill = (input, text) => {
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};

test("a card says who wants what, on whose behalf, why, and with which arguments", () => {
  show([asks(1)]);
  const text = cards()[0].textContent;

  expect(cards()[0].getAttribute("aria-label")).toBe("coder wants to run deploy");
  expect(texts(cards()[0], ".path .chip, .path .id")).toEqual(["you", "lead", "coder", "call_0001"]);
  expect(text).toContain("touches what people use");
  expect(field("target").value).toBe('"staging"');
  expect(texts(cards()[0], ".exp")).toEqual(["Expires in 23 h"]);
  expect(texts(el, ".badge")).toEqual(["2"]);
  expect(texts(el, ".sec h3")[0]).toBe("Waiting for you");
});

test("there is no send box, and nothing is said that nobody pressed", () => {
  show([asks(1), notice(2, "failed")]);
  expect(el.querySelector(".comp, form")).toBe(null);
  expect(model.sent.map(({ op }) => op)).toEqual(["hello"]);
});

test("what others wrote is text, and only a web page is a link", () => {
  const bad = "<img src=x onerror=alert(1)>";
  show([asks(1, { why: bad, title: bad, args: { [bad]: bad } }), notice(2, "notice", { title: bad, links: [{ label: bad, url: "https://example.org" }] })]);
  expect(el.querySelector("img")).toBe(null);
  expect(el.querySelector("a").getAttribute("rel")).toBe("noopener noreferrer");
});

test("approving says it once and goes on to the next card", () => {
  show([asks(1), asks(2)]);
  cards()[0].focus();
  click("Approve");

  expect(model.of("approve")).toEqual([{ op: "approve", id: expect.any(String), approval: "ap-0002" }]);
  expect(button("Approve").disabled).toBe(true);
  expect(document.activeElement).toBe(cards()[1]);
  show([done(asks(2), "approved in a view")]);
  expect(cards()).toHaveLength(1);
  expect(texts(el, ".old .w")).toEqual(["coder · deploy"]);
  expect(texts(el, ".old .o")).toEqual(["approved in a view"]);
  expect(document.activeElement).toBe(cards()[0]);
});

test("the last card that is answered gives the focus to the title", () => {
  show([asks(1)]);
  cards()[0].focus();
  click("Approve");
  show([done(asks(1), "approved in a view")]);
  expect(document.activeElement).toBe(el.querySelector("h2"));
  expect(el.querySelector(".empty").hidden).toBe(false);
});

test("arguments are edited in place, and the button says so", () => {
  show([asks(1)]);
  fill(field("nodes"), "3");
  expect(button("Approve").textContent).toBe("Approve as edited");
  expect(texts(el, ".arg.edited .was .clip")).toEqual(["asked for 5"]);
  click("Approve");
  expect(model.of("approve")[0]).toMatchObject({ approval: "ap-0001", edits: { nodes: "3" } });
});

test("what is no JSON cannot be approved, and can be restored", () => {
  show([asks(1)]);
  fill(field("nodes"), "five");
  expect(button("Approve").disabled).toBe(true);
  expect(texts(el, ".arg .refusal").join("")).toBe('Not JSON. Text needs quotes: "…"');
  expect(button("Deny").disabled).toBe(false);
  field("Restore nodes").click();
  expect(button("Approve").disabled).toBe(false);
  expect(button("Approve").textContent).toBe("Approve");
});

test("what is typed survives news about the card and about others", () => {
  show([asks(1)]);
  const input = field("nodes");
  input.focus();
  fill(input, "34");
  input.setSelectionRange(1, 1);
  show([asks(1, { fresh: false }), asks(2)]);

  expect(field("nodes", 1).value).toBe("34");
  expect(document.activeElement).toBe(field("nodes", 1));
  expect(document.activeElement.selectionStart).toBe(1);
});

test("denying asks why, and Enter sends it", () => {
  show([asks(1)]);
  click("Deny");
  expect(document.activeElement).toBe(field("reason"));
  fill(field("reason"), " Not on a Friday. ");
  el.querySelector("form").requestSubmit();
  expect(model.of("deny")).toEqual([{ op: "deny", id: expect.any(String), approval: "ap-0001", reason: "Not on a Friday." }]);
});

test("always has three reaches, the edited arguments among them", () => {
  show([asks(1)]);
  fill(field("target"), '"prod"');
  click("Always");
  expect(texts(el, ".reach")).toEqual([
    "These arguments, this sessiondeploy with exactly the edited values",
    "This tool, this sessiondeploy with any values",
    "This tool, this agentevery session of coder, until you revoke it",
  ]);
  el.querySelectorAll(".reach")[1].click();
  expect(model.of("approve")[0]).toMatchObject({ always: "tool", edits: { target: '"prod"' } });
});

test("a card that nobody can answer has no buttons for it", () => {
  show([asks(1, { acts: null })]);
  expect(texts(cards()[0], ".args code")).toEqual(["target", "nodes"]);
  expect(cards()[0].querySelector("button, input")).toBe(null);
});

test("a kernel that offers no permission gets no such button", () => {
  show([asks(1, { always: null })]);
  expect(button("Always")).toBe(undefined);
});

test("who was too late is told, also when the card is gone", () => {
  show([asks(1)]);
  click("Approve");
  const { id } = model.of("approve")[0];
  const words = "ap-0001 was already denied by %deny; that stands.";
  show([done(asks(1), "denied by %deny: no")]);
  model.say({ op: "refused", id, words });
  later(20);
  expect(el.querySelector(".told").textContent).toBe(words);
  el.querySelector(".told button").click();

  show([asks(2)]);
  click("Approve");
  model.say({ op: "refused", id: model.of("approve")[1].id, words });
  later(20);
  expect(texts(cards()[0], ".refusal[role=alert]")).toContain(words);
  show([done(asks(2), "denied by %deny: no")]);
  expect(el.querySelector(".told").textContent).toBe(words);
  el.querySelector(".told button").click();
  later(20);
  expect(el.querySelector(".told").hidden).toBe(true);
});

test("J K A D E and Escape work inside a card, and nowhere else", () => {
  show([asks(1), asks(2)]);
  press(el.querySelector("h2"), "a");
  expect(model.of("approve")).toEqual([]);
  cards()[0].focus();
  press(cards()[0], "j");
  expect(document.activeElement).toBe(cards()[1]);
  press(cards()[1], "k");
  press(cards()[0], "e");
  expect(document.activeElement).toBe(field("target"));
  press(field("target"), "a");
  expect(model.of("approve")).toEqual([]); // a letter in a field is a letter
  press(field("target"), "Escape");
  expect(document.activeElement).toBe(cards()[0]);
  press(cards()[0], "d");
  expect(document.activeElement).toBe(field("reason"));
  press(field("reason"), "Escape");
  expect(field("reason")).toBe(null);
  press(cards()[0], "a");
  expect(model.of("approve")).toHaveLength(1);
  press(cards()[1], "a", { ctrlKey: true });
  expect(model.of("approve")).toHaveLength(1);
});

test("no key leaves the view", () => {
  show([asks(1)]);
  const heard = vi.fn();
  document.body.addEventListener("keydown", heard);
  for (const key of ["d", "a", "Escape", "x"]) press(cards()[0], key);
  expect(heard).not.toHaveBeenCalled();
});

test("agents are filtered by chips that go by arrows", () => {
  show([asks(1), notice(2, "failed", { agent: "deployer" })]);
  expect(texts(el, ".pick")).toEqual(["All agents2", "deployer1", "coder1"]);
  el.querySelectorAll(".pick")[0].focus();
  press(document.activeElement, "ArrowRight");
  expect(document.activeElement.textContent).toBe("deployer1");
  expect(cards().map((card) => card.getAttribute("aria-label"))).toEqual(["ops failed"]);
});

test("mark all read asks the kernel, and the badge goes when it says so", () => {
  show([asks(1)]);
  const read = el.querySelector("header button");
  read.click();
  later(20);
  expect(model.of("read")).toHaveLength(1);
  model.say({ op: "ack", id: model.of("read")[0].id });
  show([asks(1, { fresh: false })], { ...TOP, news: 0 });
  expect(el.querySelector(".badge").hidden).toBe(true);
  expect(cards()[0].classList).toContain("seen");
  expect(read.disabled).toBe(true);
});

test("what failed is resumed, opened or closed, and Discuss opens its session", () => {
  show([notice(1, "failed", { traceback: "Traceback\n  x\nValueError" })]);
  expect(texts(el, "summary.meta")).toEqual(["Traceback, 3 lines"]);
  click("Open session");
  expect(model.of("open")).toMatchObject([{ session: "s-0004" }]);
  click("Open session");
  expect(texts(el, ".opening .chip")).toEqual([]);
  click("Close session");
  click("Close ops");
  expect(model.of("close")).toMatchObject([{ card: "e:coder:1" }]);
  model.say({ op: "ack", id: model.of("close")[0].id });
  later(20);
  click("Back");
  click("Discuss");
  model.say({ op: "ack", id: model.of("discuss")[0].id, session: "s-0009", name: "ops-about-1" });
  later(20);
  expect(model.of("open").at(-1)).toMatchObject({ session: "s-0009" });
  expect(texts(el, ".opening .chip")).toEqual(["ops-about-1"]);
});

test("a cap of the room is raised by its own size", () => {
  show([notice(1, "budget", { acts: ["raise", "resume"], knob: "room.max_tokens", limit: 4000, used: 4100 })]);
  expect(el.querySelector("[role=progressbar]").getAttribute("aria-label")).toBe("4,100 of 4,000 tokens");
  click("Allow 4,000 more tokens");
  expect(model.of("raise")).toMatchObject([{ card: "e:coder:1" }]);
});

test("a cap of money is told and raised in dollars", () => {
  show([notice(1, "budget", { acts: ["raise", "resume"], knob: "room.max_cost", limit: 0.5, used: 0.6125 })]);
  expect(el.querySelector("[role=progressbar]").getAttribute("aria-label")).toBe("$0.61 of $0.50");
  click("Allow $0.50 more");
  expect(model.of("raise")).toMatchObject([{ card: "e:coder:1" }]);
});

test("standing permissions are listed and revoked in place", () => {
  const rule = { id: "pm-0001", tool: "deploy", where: "coder", reach: "this tool, this session", by: "view", at: NOW };
  show([asks(1)], { ...TOP, permissions: [rule] });
  const link = el.querySelector(".rules");
  expect(link.textContent).toBe("1 standing permission");
  link.click();
  expect(texts(el, ".rule .o")).toEqual(["coder: this tool, this session"]);
  el.querySelector(".rule button").click();
  later(20);
  expect(model.of("revoke")).toMatchObject([{ permission: "pm-0001" }]);
  show([], TOP);
  expect(el.querySelector(".permissions").hidden).toBe(true);
});

test("a kernel that is gone leaves the cards, says so, and takes no answer", () => {
  show([asks(1)]);
  fill(field("nodes"), "7");
  model.dead = true;
  click("Approve");
  expect(el.querySelector(".banner").textContent).toBe(
    "The kernel restarted. Open cards are kept: run %inbox again to answer them.",
  );
  expect(button("Approve").disabled).toBe(true);
  expect(field("nodes").value).toBe("7");
  expect(field("nodes").disabled).toBe(true);
});

test("a saved notebook has the cards and no control", () => {
  stop();
  document.body.replaceChildren();
  stop = start({ rows: [asks(1), done(asks(2), "approved in a view")] }, true);
  later(300);
  expect(texts(el, ".foot")[0]).toMatch(/^Saved \d\d:05:00 without a kernel. Run %inbox to answer.$/);
  expect(texts(el, ".sec h3")[0]).toBe("Was waiting for you");
  const controls = [...el.querySelectorAll("button, input")];
  expect(controls.filter((one) => !one.closest("[hidden]"))).toEqual([]);
});

test("how long is left is said in whole units", () => {
  const at = Date.parse(NOW);
  const left = (seconds) => expiresIn(new Date(at + seconds * 1000).toISOString(), at);
  expect([0, 30, 90, 7200, 47 * 3600, 3 * 86400].map(left)).toEqual([
    "Expired",
    "Expires in less than a minute",
    "Expires in 1 min",
    "Expires in 2 h",
    "Expires in 47 h",
    "Expires in 3 days",
  ]);
});

test("axe finds nothing in any state", async () => {
  const rule = { id: "pm-0001", tool: "deploy", where: "coder", reach: "this tool, this session", args: { a: 1 }, by: "api", at: NOW };
  show(
    [asks(1), asks(2), asks(3, { agent: "b" }), notice(4, "failed", { traceback: "x\ny" }), notice(5, "notice", { links: [{ label: "x", url: "https://x" }] }), done(asks(6), "approved")],
    { ...TOP, permissions: [rule] },
  );
  click("Deny", 0);
  click("Always", 1);
  fill(field("nodes", 2), "x");
  el.querySelector(".rules").click();
  vi.useRealTimers();
  const found = await axe.run(el, { rules: { "color-contrast": { enabled: false }, region: { enabled: false } } });
  expect(found.violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html)])).toEqual([]);
});
