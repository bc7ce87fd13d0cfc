import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeModel, HEAD, later, mail, press, texts, turn, type, widget } from "./fakes.js";

let model;
let view;
const banner = (el) =>
  el.querySelector(".banner").hidden ? "" : el.querySelector(".banner").textContent;

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-03-02T10:05:00Z") });
  sessionStorage.clear();
  model = new FakeModel();
  view = widget(model);
});

afterEach(() => {
  view.close();
  document.body.replaceChildren();
  vi.useRealTimers();
});

/** A view whose kernel is there. */
function live() {
  const el = view.open();
  model.rows([], { upto: 0 });
  return el;
}

// ── Rows ──

test("a gap is noticed by number and what is missing is asked for", () => {
  const el = live();
  model.rows([mail(1)]);
  later(500);
  model.rows([mail(3)], { after: 2 });

  expect(texts(el, ".mt")).toEqual(["letter 1"]);
  expect(model.of("hello").at(-1)).toEqual({ op: "hello", after: 1, top: [0, 0] });
  model.rows([mail(2), mail(3)], { after: 1 });
  expect(texts(el, ".mt")).toEqual(["letter 1", "letter 2", "letter 3"]);
});

test("a lost last batch is noticed by the next beat", () => {
  live();
  later(500);
  model.say({ op: "beat", upto: 7 });

  expect(model.of("hello").at(-1)).toEqual({ op: "hello", after: 0, top: [0, 0] });
});

test("many gaps at once are asked for once", () => {
  live();
  later(500);
  const before = model.of("hello").length;
  for (let i = 5; i < 15; i++) model.rows([mail(i)], { after: i - 1 });
  expect(model.of("hello").length - before).toBe(1);

  later(1000);
  expect(model.of("hello").length - before).toBe(2);
});

test("a row that comes twice is shown once, and an old one changes nothing", () => {
  const el = live();
  model.rows([mail(1, { v: 5, text: "new" })]);
  model.rows([mail(1, { v: 3, text: "old" })]);

  expect(texts(el, ".mt")).toEqual(["new"]);
});

test("a piece of text whose beginning is missing is not shown wrong but asked for", () => {
  const el = live();
  model.rows([turn(2, 1, { live: true, text: "One. " })]);
  later(500);
  model.rows([{ key: "t:2", v: 4, o: [2, 2 ** 40], base: 3, add: "Three." }], { after: 1 });

  expect(el.querySelector(".say").textContent).toBe("One. ");
  expect(model.of("hello").at(-1).after).toBe(1);
});

test("when the kernel begins anew further down, rows above are offered instead of shown", () => {
  const el = live();
  model.rows([mail(1), mail(2)]);
  model.rows([mail(9000)], { after: 2, earlier: 8999, top: mail(9000).o });

  expect(texts(el, ".mt")).toEqual(["letter 9000"]);
  expect(el.querySelector(".older").textContent).toBe("Show 8999 earlier entries");
});

test("catching up is told only when it takes a second", () => {
  const el = live();
  const batch = (n) => model.rows([mail(n)], { after: n - 1, left: 9760 });
  batch(1);
  expect(el.querySelector("[role=status]").textContent).toBe("idle");

  later(1100);
  batch(2);
  expect(el.querySelector("[role=status]").textContent).toBe("Catching up, 2 of 9,762");
});

// ── Sending ──

test("Enter sends, Alt+Enter sends as interrupt, Shift+Enter is a line", () => {
  const el = live();
  press(type(el, "one"), "Enter");
  press(type(el, "two"), "Enter", { altKey: true });
  const area = type(el, "three");
  expect(press(area, "Enter", { shiftKey: true }).defaultPrevented).toBe(false);

  expect(model.of("send").map(({ text, interrupt }) => [text, interrupt])).toEqual([
    ["one", false],
    ["two", true],
  ]);
  expect(area.value).toBe("three");
});

test("the buttons do what the keys do, and nothing is sent of nothing", () => {
  const el = live();
  type(el, "   ");
  el.querySelector(".btn.solid").click();
  type(el, "now");
  el.querySelector(".btn.tone").click();

  expect(model.of("send").map(({ text, interrupt }) => [text, interrupt])).toEqual([["now", true]]);
});

test("a reply names the mail it answers; Esc makes it none", () => {
  const el = live();
  model.rows([mail(1, { tone: "agent", name: "coder", text: "Shall I?" })]);
  el.querySelector(".reply").click();
  later(20);
  expect(el.querySelector(".rto").textContent).toBe("Reply to coder m-0001 · Shall I?");
  press(type(el, "yes"), "Enter");
  expect(model.of("send")[0].reply_to).toBe("m-0001");

  el.querySelector(".reply").click();
  later(20);
  press(el.querySelector("textarea"), "Escape");
  expect(el.querySelector(".rto").hidden).toBe(true);
  press(type(el, "no"), "Enter");
  expect(model.of("send")[1].reply_to).toBe(null);
});

test("Enter that ends a word being composed sends nothing", () => {
  const el = live();
  press(type(el, "日本"), "Enter", { isComposing: true });

  expect(model.of("send")).toEqual([]);
});

test("up in an empty box brings back what was said, the newest first", () => {
  const el = live();
  model.rows([
    mail(1, { text: "first" }),
    mail(2, { text: "second" }),
    mail(3, { tone: "agent", name: "coder" }),
  ]);
  const area = el.querySelector("textarea");
  press(area, "ArrowUp");
  expect(area.value).toBe("second");
  press(area, "ArrowUp");
  expect(area.value).toBe("first");
  press(area, "ArrowDown");
  press(area, "ArrowDown");
  expect(area.value).toBe("");

  type(el, "my own words");
  press(area, "ArrowUp");
  expect(area.value).toBe("my own words");
});

test("words that are confirmed at once never look undelivered", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  expect(el.querySelector(".lost")).toBe(null);

  model.say({ op: "ack", id: model.of("send")[0].id, mail: "m-0001" });
  model.rows([mail(1)]);
  later(2000);
  expect(el.querySelector(".lost")).toBe(null);
  expect(texts(el, ".mt")).toEqual(["letter 1"]);
});

test("words that take their time come into sight as not delivered", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  later(600);
  expect(texts(el, ".lost .flag")).toEqual(["not delivered yet"]);

  model.say({ op: "ack", id: model.of("send")[0].id, mail: "m-0001" });
  later(3000);
  expect(el.querySelector(".lost")).toBe(null);
});

test("a refusal goes back into the box with its words", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  expect(el.querySelector("textarea").value).toBe("");
  model.say({ op: "refused", id: model.of("send")[0].id, words: "mailbox of rev is full" });

  expect(el.querySelector("textarea").value).toBe("hello");
  expect(el.querySelector(".refusal").textContent).toBe("Not sent: mailbox of rev is full");
  expect(el.querySelector(".lost")).toBe(null);
});

test("a refusal does not overwrite what was typed since", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  type(el, "something new");
  model.say({ op: "refused", id: model.of("send")[0].id, words: "mailbox of rev is full" });

  expect(el.querySelector("textarea").value).toBe("something new");
  expect(el.querySelector(".lost .flag").textContent).toBe("not sent: mailbox of rev is full");
});

// ── Busy ──

test("a question without an answer for a second: a cell is running", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  expect(banner(el)).toBe("");
  later(1300);

  expect(banner(el)).toBe("A cell is running. What you send now arrives when it ends or awaits.");
  expect(texts(el, ".lost .mt, .lost .flag")).toEqual(["hello", "not delivered yet: kernel busy"]);
});

test("what is typed while a cell blocks goes out when it ends, in order and once", () => {
  const el = live();
  press(type(el, "one"), "Enter");
  later(1300);
  press(type(el, "two"), "Enter");
  press(type(el, "three"), "Enter");
  expect(model.of("send").map((m) => m.text)).toEqual(["one"]);
  expect(el.querySelectorAll(".lost").length).toBe(3);

  model.say({ op: "ack", id: model.of("send")[0].id, mail: "m-0001" });
  expect(banner(el)).toBe("");
  expect(model.of("send").map((m) => m.text)).toEqual(["one", "two", "three"]);
});

test("words held back can be edited or discarded; words on their way cannot", () => {
  const el = live();
  press(type(el, "one"), "Enter");
  later(1300);
  press(type(el, "two"), "Enter");
  press(type(el, "three"), "Enter");
  const [one, two] = el.querySelectorAll(".lost");
  expect(texts(one, "button")).toEqual([]);
  expect(texts(two, "button")).toEqual(["Edit", "Discard"]);

  two.querySelectorAll("button")[0].click();
  later(20);
  expect(el.querySelector("textarea").value).toBe("two");
  el.querySelectorAll(".lost")[1].querySelectorAll("button")[1].click();
  later(20);
  model.say({ op: "ack", id: model.of("send")[0].id, mail: "m-0001" });
  expect(model.of("send").map((m) => m.text)).toEqual(["one"]);
});

test("rows that go on while a question stays open do not hide that it does", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  later(1300);
  model.rows([mail(1, { tone: "agent", name: "coder" })]);
  later(300);

  expect(banner(el)).toContain("A cell is running.");
});

test("a running session that falls silent is asked, an idle one is left alone", () => {
  const el = live();
  later(60000);
  expect(model.of("ping")).toEqual([]);

  model.rows([], { upto: 0, head: { ...HEAD, status: "running", turn: 2 } });
  for (let i = 0; i < 5; i++) {
    later(1000);
    model.say({ op: "beat", upto: 0 });
  }
  expect(model.of("ping")).toEqual([]);
  later(4000);
  expect(model.of("ping").length).toBe(1);
  expect(banner(el)).toContain("A cell is running.");
  model.say({ op: "pong", id: "ping", upto: 0 });
  expect(banner(el)).toBe("");
});

test("whoever goes to the box finds out at once whether the kernel listens", () => {
  const el = live();
  el.querySelector("textarea").focus();

  expect(model.of("ping").length).toBe(1);
});

test("an answer lost on the way is asked for again, under the same id", () => {
  live();
  press(type(document.body, "hello"), "Enter");
  later(1500);
  for (let i = 0; i < 8; i++) {
    later(1000);
    model.say({ op: "beat", upto: 0 });
  }

  const ids = new Set(model.of("send").map((m) => m.id));
  expect(model.of("send").length).toBeGreaterThan(1);
  expect(ids.size).toBe(1);
});

// ── Gone, saved, over ──

test("a kernel that is gone: the view says so, keeps the text and sends nothing", () => {
  const el = live();
  type(el, "and who approved the");
  model.dead = true;
  press(el.querySelector("textarea"), "Enter");

  expect(banner(el)).toBe(
    "The kernel restarted, so this view is no longer live. Run %watch rev again. Your text is kept.",
  );
  expect(el.querySelector(".banner").getAttribute("role")).toBe("alert");
  expect(el.querySelector("textarea").value).toBe("and who approved the");
  expect(el.querySelector("textarea").readOnly).toBe(true);
  expect([...el.querySelectorAll(".comp .btn, .head .btn")].every((b) => b.disabled)).toBe(true);
});

test("what cannot be pressed any more does not look as if it could", () => {
  const el = live();
  model.rows([
    mail(1, { o: [1, 1], state: "answered", turn: 1, answered: 2 }),
    turn(2, 2, { live: true, text: "half a" }),
  ]);
  expect(texts(el, ".feed .ent button")).toEqual(["Reply", "turn 1", "turn 2"]);
  model.dead = true;
  press(type(el, "x"), "Enter");

  expect(texts(el, ".feed .ent button")).toEqual([]);
  expect(el.querySelector(".caret")).toBe(null);
});

test("a front end that marks the view as disconnected is believed", async () => {
  const el = live();
  el.classList.add("jupyter-widgets-disconnected");
  for (const handler of model.handlers.get("comm_live_update")) handler();
  await Promise.resolve();
  later(20);

  expect(banner(el)).toContain("The kernel restarted");
});

test("words on their way to a kernel that went are in our hands again", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  later(1300);
  model.dead = true;
  el.querySelector("textarea").focus();
  press(type(el, "more"), "Enter");
  later(20);
  model.handlers.get("comm_live_update").forEach((handler) => handler());

  expect(el.querySelector(".lost .mt").textContent).toBe("hello");
});

test("a kernel that does not know the view any more is asked by the front end's own means", async () => {
  const kernel = {
    status: "idle",
    requestCommInfo: vi.fn(async () => ({ content: { comms: { other: {} } } })),
  };
  model.widget_manager = { kernel };
  const el = live();
  press(type(el, "hello"), "Enter");
  await vi.advanceTimersByTimeAsync(6000);

  expect(kernel.requestCommInfo).toHaveBeenCalledTimes(1);
  expect(banner(el)).toContain("The kernel restarted");
});

test.each([
  [
    "that knows the view",
    { status: "idle", requestCommInfo: vi.fn(async () => ({ content: { comms: { v1: {} } } })) },
  ],
  [
    "that is busy",
    { status: "busy", requestCommInfo: vi.fn(async () => ({ content: { comms: {} } })) },
  ],
])("a kernel %s is not declared gone", async (_, kernel) => {
  model.widget_manager = { kernel };
  const el = live();
  press(type(el, "hello"), "Enter");
  await vi.advanceTimersByTimeAsync(20000);

  expect(banner(el)).toContain("A cell is running.");
});

test("a kernel that is only slow is not declared gone", async () => {
  const kernel = { status: "idle", requestCommInfo: vi.fn(() => new Promise(() => {})) };
  model.widget_manager = { kernel };
  const el = live();
  press(type(el, "hello"), "Enter");
  await vi.advanceTimersByTimeAsync(60000);

  expect(banner(el)).toContain("A cell is running.");
});

test("a saved notebook without a kernel shows its last rows and no controls", () => {
  const saved = new FakeModel({
    rows: [mail(1), turn(2, 2, { live: true, text: "half a" })],
    earlier: 23,
    head: { ...HEAD, at: "2026-03-02T10:05:02Z" },
  });
  saved.dead = true;
  const el = widget(saved).open();
  later(20);

  expect(texts(el, ".mt")).toEqual(["letter 1"]);
  expect(el.querySelector(".foot").textContent).toMatch(
    /^Saved \d\d:\d\d:02 without a kernel\. Run %watch rev to see it live\.$/,
  );
  expect(
    [...el.querySelectorAll("button, textarea, .caret")].filter((e) => !e.closest("[hidden]")),
  ).toEqual([]);
});

test("a front end that has no kernel and drops what is sent shows what is saved too", () => {
  const el = document.createElement("div");
  el.className = "jupyter-widgets-disconnected";
  document.body.append(el);
  view.definition.render({ model, el });
  later(2000);

  expect(model.sent).toEqual([]);
  expect(el.querySelector(".foot").textContent).toContain("without a kernel");
});

test("a room that was closed says so", () => {
  const el = live();
  model.say({ op: "over", words: "This view of rev has ended: its room was closed." });

  expect(banner(el)).toBe("This view of rev has ended: its room was closed.");
  expect(el.querySelector("textarea").readOnly).toBe(true);
});

test("stop is offered while something runs and is asked for once", () => {
  const el = live();
  const stop = el.querySelector(".head .btn:last-child");
  expect(stop.disabled).toBe(true);
  model.rows([], { upto: 0, head: { ...HEAD, status: "running", turn: 2 } });
  expect(stop.disabled).toBe(false);
  stop.click();
  later(20);

  expect(model.of("stop").length).toBe(1);
  expect(stop.disabled).toBe(true);
});

// ── Reload ──

test("a draft and its reply survive a reload", () => {
  const el = live();
  model.rows([mail(1)]);
  el.querySelector(".reply").click();
  later(20);
  type(el, "half a thought");
  view.close();
  document.body.replaceChildren();

  const again = widget(new FakeModel()).open();
  expect(again.querySelector("textarea").value).toBe("half a thought");
  expect(again.querySelector(".rto").textContent).toContain("m-0001");
});

test("unconfirmed words are said again after a reload, under the same id", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  view.close();
  document.body.replaceChildren();

  const next = new FakeModel();
  widget(next).open();
  expect(next.of("send")).toEqual([]);
  next.rows([], { upto: 0 });
  expect(next.of("send")).toEqual(model.of("send"));
});

test("confirmed words are not said again", () => {
  const el = live();
  press(type(el, "hello"), "Enter");
  model.say({ op: "ack", id: model.of("send")[0].id, mail: "m-0001" });
  view.close();
  document.body.replaceChildren();

  const next = new FakeModel();
  const again = widget(next).open();
  next.rows([], { upto: 0 });
  later(500);
  expect(next.of("send")).toEqual([]);
  expect(again.querySelector(".lost")).toBe(null);
});

test("words for a kernel that is gone wait in the next view for a decision", () => {
  const el = live();
  type(el, "a draft");
  model.rows([mail(1)]);
  press(type(el, "hello"), "Enter");
  type(el, "a draft");
  view.close();
  document.body.replaceChildren();

  const next = new FakeModel({ view: "v2", life: "life2" });
  const again = widget(next).open();
  next.rows([], { upto: 0, life: "life2" });
  expect(next.of("send")).toEqual([]);
  expect(again.querySelector("textarea").value).toBe("a draft");
  expect(texts(again, ".lost .mt, .lost .flag")).toEqual([
    "hello",
    "not confirmed before the kernel restarted",
  ]);
  expect(texts(again, ".lost button")).toEqual(["Edit", "Discard"]);
});

test("two notebooks, two rooms or two sessions never share a draft", () => {
  type(live(), "for rev in lab");
  view.close();
  document.body.replaceChildren();

  const others = [{ room: "other" }, { head: { ...HEAD, id: "s-0009" } }].map(
    (more) => new FakeModel({ view: "v2", life: "life2", ...more }),
  );
  for (const other of others) expect(widget(other).open().querySelector("textarea").value).toBe("");
});

test("a front end without storage loses nothing but the reload", () => {
  const taken = vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new Error("QuotaExceeded");
  });
  const el = live();
  press(type(el, "hello"), "Enter");

  expect(model.of("send").length).toBe(1);
  taken.mockRestore();
});

test("a view drawn anew keeps the draft, and two views of a model share it", () => {
  const el = live();
  type(el, "half a thought");
  later(20);
  const other = view.open();
  expect(other.querySelector("textarea").value).toBe("half a thought");

  el.close();
  other.close();
  expect(view.open().querySelector("textarea").value).toBe("half a thought");
});

test("why a mail waits stands under it as long as it waits", () => {
  const el = view.open();
  model.rows([], { upto: 0 });
  press(type(el, "hello"), "Enter");
  const [{ id }] = model.of("send");
  model.say({ op: "ack", id, mail: "m-0001", note: "waits: rev is paused" });
  model.rows([mail(1)]);
  expect(el.querySelector(".rc").textContent).toBe("queued, not delivered yetwaits: rev is paused");

  model.rows([mail(1, { v: 2, o: [1, 1], state: "delivered", turn: 1 })], { after: 1 });
  expect(el.querySelector(".rc").textContent).not.toContain("waits");
});
