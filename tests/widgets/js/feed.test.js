import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { call, FakeModel, HEAD, later, mail, press, texts, turn, widget } from "./fakes.js";

let model;
let view;

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

test("a view says hello when it is shown and bye when the last of it goes", () => {
  const one = view.open();
  const two = view.open();
  expect(model.of("hello")).toEqual([{ op: "hello", after: 0, top: null }]);

  one.close();
  expect(model.of("bye")).toEqual([]);
  two.close();
  expect(model.of("bye").length).toBe(1);
});

test("rows stand in the order of their places, whatever order they came in", () => {
  const el = view.open();
  model.rows([
    mail(3),
    turn(2, 4, { text: "hello" }),
    mail(1, { o: [1, 1], state: "delivered", turn: 1 }),
  ]);

  expect(texts(el, ".ent .mt, .ent .say")).toEqual(["letter 1", "hello", "letter 3"]);
});

test("what somebody wrote is shown literally, markup and all (M-133)", () => {
  const el = view.open();
  const evil = "<script>alert(1)</script><img src=x onerror=alert(1)>";
  model.rows([
    mail(1, { text: evil, name: evil }),
    call("call_0001", 2, { tool: evil, args: { a: evil }, result: evil, state: "completed" }),
  ]);

  expect(el.querySelector("script, img")).toBe(null);
  expect(el.querySelector(".mt").textContent).toBe(evil);
});

test("a mail shows its sender, priority, hops, what it answers and what it expects (M-48)", () => {
  const el = view.open();
  model.rows([
    mail(1, {
      tone: "agent",
      name: "coder",
      of: "child",
      interrupt: true,
      hops: 2,
      re: "m-1c08",
      expects: true,
    }),
  ]);

  expect(el.querySelector(".mh").textContent).toContain("coder child");
  expect(texts(el, ".mh .flag, .mh > .meta")).toEqual([
    "interrupt",
    "re m-1c08",
    "2 hops",
    "expects reply",
  ]);
  expect(el.querySelector(".mailbox").dataset.k).toBe("now");
});

test.each([
  [{ state: "queued" }, ["queued, not delivered yet"]],
  [{ state: "delivered", turn: 3 }, ["queued", "delivered in turn 3"]],
  [
    { state: "answered", turn: 3, answered: 4 },
    ["queued", "delivered in turn 3", "answered in turn 4"],
  ],
  [{ state: "delivered", turn: 3, tone: "agent" }, ["delivered in turn 3"]],
  [{ state: "answered", turn: 3, answered: 4, tone: "agent" }, ["answered in turn 4"]],
])("the receipt of %j reads %j", (fields, words) => {
  const el = view.open();
  model.rows([mail(1, { ...fields, o: [1, 1] })]);

  expect(texts(el, ".rc .step")).toEqual(words);
});

test("unread mail stands under a divider that counts it (M-51)", () => {
  const el = view.open();
  model.rows([mail(1, { o: [1, 1], state: "delivered", turn: 1 }), mail(2), mail(3), mail(4)], {
    head: { ...HEAD, status: "running", turn: 2, unread: 3 },
  });

  const order = [...el.querySelector(".rows").children].map(
    (child) => child.dataset.key ?? child.textContent,
  );
  expect(order).toEqual(["m:1", "3 unreadread when this turn ends", "m:2", "m:3", "m:4"]);
  expect(el.querySelector(".stats").textContent).toContain("3 unread");
  expect(el.querySelector("[role=status]").textContent).toBe("running · turn 2");
});

test("a turn and the header tell what they cost, where it is known", () => {
  const el = view.open();
  model.rows([turn(2, 1, { seconds: 9, in: 4000, out: 281, cost: 0.0174 }), turn(4, 2, { seconds: 9, in: 4000, out: 281 })], {
    head: { ...HEAD, cost: 0.0174 },
  });
  expect(texts(el, ".turn-h .r")).toEqual(["9.0 s · 4.0k in · 281 out · $0.017", "9.0 s · 4.0k in · 281 out"]);
  expect(texts(el, ".stats > span").slice(-2)).toEqual(["2.4k tokens", "$0.017"]);

  model.rows([], { after: 2, upto: 3, head: HEAD });
  expect(texts(el, ".stats > span").at(-1)).toBe("2.4k tokens");
});

test("a streaming turn grows by what is new, in the same element, and ends without a caret", () => {
  const el = view.open();
  model.rows([turn(2, 1, { live: true, text: "One. Two" })]);
  const words = el.querySelector(".say");
  model.rows([{ key: "t:2", v: 2, o: [2, 2 ** 40], base: 1, add: " and three. Fo" }], { after: 1 });

  expect(el.querySelector(".say")).toBe(words);
  expect(words.textContent).toBe("One. Two and three. Fo");
  expect(words.querySelector(".caret")).not.toBe(null);

  model.rows([turn(2, 3, { text: "One. Two and three. Four.", seconds: 12, in: 2100, out: 318 })], {
    after: 2,
  });
  expect(words.textContent).toBe("One. Two and three. Four.");
  expect(words.querySelector(".caret")).toBe(null);
  expect(el.querySelector(".turn-h .r").textContent).toBe("12 s · 2.1k in · 318 out");
});

test("only whole sentences of a streaming turn are read out", () => {
  const el = view.open();
  model.rows([turn(2, 1, { live: true, text: "One. Two. Thr" })]);
  const [told, rest] = el.querySelectorAll(".say .t > span");

  expect(told.textContent).toBe("One. Two. ");
  expect(rest.textContent).toBe("Thr");
  expect(rest.getAttribute("aria-hidden")).toBe("true");
});

test("a turn whose words were void is gone", () => {
  const el = view.open();
  model.rows([turn(2, 1, { live: true, text: "never" })]);
  model.rows([{ key: "t:2", v: 2, o: [2, 2 ** 40], kind: "gone" }], { after: 1 });

  expect(el.querySelector(".turn")).toBe(null);
});

test.each([
  [{ state: "running" }, "running", "tool", ""],
  [{ state: "completed", result: "ok", seconds: 0.8 }, "completed", undefined, ""],
  [
    { state: "completed", hold: "still running after 10s", mail: "m-0001" },
    "completed by mail",
    undefined,
    "placeholder: still running after 10s→result in m-0001",
  ],
  [{ state: "failed", error: "HTTP 503\nmore" }, "failed", "bad", "HTTP 503"],
  [{ state: "orphaned", error: "the kernel ended" }, "orphaned", "bad", "the kernel ended"],
  [{ state: "timed_out" }, "timed out", undefined, ""],
  [{ state: "deferred" }, "waiting for you", "now", "Runs only if you approve."],
  [
    { state: "denied", error: "Tool 'x' was not approved: no", decided: "denied by %deny: no" },
    "denied",
    "bad",
    "denied by %deny: no",
  ],
  [{ state: "cancelled", error: "cancelled: the call was ended" }, "cancelled", undefined, ""],
  [
    {
      state: "completed",
      tool: "send-message",
      sent: { mail: "m-1c08", to: "s-0003", name: "coder" },
    },
    "sent",
    undefined,
    "m-1c08 to coder",
  ],
  [
    {
      state: "completed",
      tool: "send-message",
      sent: { mail: "m-1c08", to: "s-0003", name: "coder", seq: 4, read: true, turn: 2 },
    },
    "sent",
    undefined,
    "m-1c08 to coder · delivered in its turn 2",
  ],
  [
    { state: "failed", tool: "send-message", error: "rev may not write to x, its peer" },
    "failed",
    "bad",
    "rev may not write to x, its peer",
  ],
])("a call that is %j says %s", (fields, words, tone, note) => {
  const el = view.open();
  model.rows([call("call_0001", 1, fields)]);

  expect(el.querySelector(".stt").textContent).toBe(words);
  expect(el.querySelector(".stt").dataset.k).toBe(tone);
  expect(texts(el, ".hold").join("")).toBe(note);
});

test("an unfolded call shows its arguments and result, and stays unfolded when it changes", () => {
  const el = view.open();
  model.rows([call("call_0001", 1)]);
  const details = el.querySelector("details");
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  model.rows([call("call_0001", 2, { state: "completed", result: "412 passed" })], { after: 1 });

  expect(el.querySelector("details").open).toBe(true);
  expect(texts(el, "pre")).toEqual(['{\n  "suite": "fast"\n}', "412 passed"]);
});

test("progress is a bar with a name and words", () => {
  const el = view.open();
  model.rows([call("call_0001", 1, { progress: { done: 5, total: 8, text: "19 commits left" } })]);
  const bar = el.querySelector("[role=progressbar]");

  expect(bar.getAttribute("aria-valuenow")).toBe("63");
  expect(el.querySelector(".prog > .clip").textContent).toBe("5 of 8 · 19 commits left");
});

test("the clock of a running call goes on by itself", () => {
  const el = view.open();
  model.rows([call("call_0001", 1, { started: "2026-03-02T10:04:19Z" })], {
    head: { ...HEAD, status: "running", calls: 1 },
  });
  expect(el.querySelector(".el").textContent).toBe("0:41");

  later(2000);
  expect(el.querySelector(".el").textContent).toBe("0:43");
});

test("a long result is folded to its first lines and says how many are left", () => {
  const el = view.open();
  const text = Array.from({ length: 215 }, (_, i) => `line ${i}`).join("\n");
  model.rows([mail(1, { tone: "tool", name: "run_tests", mono: true, text })]);
  expect(el.querySelector(".mt").textContent).toBe("line 0\nline 1\nline 2");
  expect(el.querySelector(".more").textContent).toBe("and 212 lines");

  el.querySelector(".more").click();
  expect(el.querySelector(".mt").textContent).toBe(text);
});

test("a failure says what is kept and folds its traceback away", () => {
  const el = view.open();
  model.rows([
    {
      key: "f:9",
      v: 1,
      o: [9, 0],
      kind: "fail",
      text: "ModelError: 529 overloaded",
      traceback: "Traceback\n  line\nerror",
    },
  ]);

  expect(el.querySelector(".fail").getAttribute("role")).toBe("alert");
  expect(texts(el, ".fail > p")).toEqual([
    "The run failed",
    "ModelError: 529 overloaded",
    "Nothing was lost: what was stored is kept, unread mail too. Send mail or run %resume rev to go on.",
  ]);
  expect(el.querySelector(".fail details").open).toBe(false);
  expect(el.querySelector(".fail summary").textContent).toBe("Traceback, 3 lines");
});

test("marks and ends say what happened", () => {
  const el = view.open();
  model.rows([
    {
      key: "x:1",
      v: 1,
      o: [1, 0],
      kind: "mark",
      mark: "interrupt",
      by: "you",
      id: "m-7f3a",
      detached: 1,
    },
    { key: "x:2", v: 2, o: [2, 0], kind: "mark", mark: "inbox", count: 2, turn: 5 },
    { key: "x:4", v: 5, o: [2, 1], kind: "mark", mark: "interrupt", by: "coder", id: "m-7f3b" },
    { key: "e:3", v: 3, o: [3, 0], kind: "end", reason: "answer", rounds: 3, allowed: 10, seconds: 48 },
    { key: "e:4", v: 4, o: [4, 0], kind: "end", reason: "failed" },
  ]);

  expect(texts(el, ".rows > *")).toEqual([
    "Interrupted by youm-7f3a · 1 attached call detached, keeps running",
    "INBOX2 mails read into turn 5",
    "Interrupted by coderm-7f3b",
    "Run ended · final answer · 3 of 10 rounds · 48 s",
    "Run failed",
  ]);
});

const read = (n, more = {}) => mail(n, { o: [n, 1], state: "delivered", turn: 1, ...more });
const many = (n, from = 1) => Array.from({ length: n }, (_, i) => read(from + i));
const shown = (el) => texts(el, ".mailbox .mt");

test("the page keeps the last 250 rows and offers the earlier ones", () => {
  const el = view.open();
  model.rows(many(270), { earlier: 30 });
  expect(shown(el).length).toBe(250);
  expect(el.querySelector(".older").textContent).toBe("Show 50 earlier entries");

  el.querySelector(".older").click();
  later(20);
  expect(shown(el).length).toBe(270);
  expect(model.of("older")).toEqual([{ op: "older", count: 125 }]);

  const earlier = Array.from({ length: 30 }, (_, i) => read(1000 + i, { v: 1, o: [0, i] }));
  model.say({ op: "older", rows: earlier, earlier: 0, top: [0, 0] });
  expect(shown(el).length).toBe(300);
  expect(el.querySelector(".older").hidden).toBe(true);
});

test("whoever reads further up keeps the rows there while mail comes in", () => {
  const el = view.open();
  model.rows(many(300));
  const feed = el.querySelector(".feed");
  Object.defineProperties(feed, { scrollHeight: { value: 9000 }, clientHeight: { value: 600 } });
  feed.dispatchEvent(new Event("scroll"));
  model.rows(many(100, 301), { after: 300 });

  expect(shown(el)[0]).toBe("letter 51");
  expect(shown(el).at(-1)).toBe("letter 400");
});

test("one frame draws what it has time for, the last rows first, and the next goes on", () => {
  const el = view.open();
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (now += 1));
  model.rows(many(40));
  const first = shown(el);
  expect(first.length).toBeLessThan(40);
  expect(first.at(-1)).toBe("letter 40");

  later(100);
  expect(shown(el).length).toBe(40);
  vi.restoreAllMocks();
});

test("a link leads to a row that is not on the page, and fetches it if it is not here", () => {
  Element.prototype.scrollIntoView = vi.fn();
  const el = view.open();
  const last = read(900, { re: "m-0005" });
  model.rows([...many(300, 10), last], { earlier: 9 });
  el.querySelector('[data-key="m:900"] .mh .link').click();
  expect(model.of("older")).toEqual([{ op: "older", count: 200 }]);
  const above = Array.from({ length: 9 }, (_, i) => read(i + 1));
  model.say({ op: "older", rows: above, earlier: 0, top: [0, 0] });
  later(20);

  expect(document.activeElement.dataset.key).toBe("m:5");
  expect(document.activeElement.classList.contains("flash")).toBe(true);
  later(2000);
  expect(document.activeElement.classList.contains("flash")).toBe(false);
});

test("the turn that read a mail is one click away", () => {
  Element.prototype.scrollIntoView = vi.fn();
  const el = view.open();
  model.rows([read(1), turn(2, 2, { text: "hello" })]);
  el.querySelector(".rc .link").click();

  expect(document.activeElement.dataset.key).toBe("t:2");
});

test("code between fences keeps its columns, the rest stays as it was written", () => {
  const el = view.open();
  const text = "See **this**:\n\n```python\ndef f(x):\n    return x\n```\n\nDone.";
  model.rows([turn(2, 1, { text })]);

  expect(texts(el, ".say > *")).toEqual(["See **this**:", "def f(x):\n    return x", "Done."]);
  expect(el.querySelector(".say pre").dataset.lang).toBe("python");
});

test("code that streams grows in place", () => {
  const el = view.open();
  model.rows([turn(2, 1, { live: true, text: "So:\n```\na = 1\n" })]);
  const block = el.querySelector(".say pre");
  model.rows([{ key: "t:2", v: 2, o: [2, 2 ** 40], base: 1, add: "b = 2\n```\nDone" }], { after: 1 });

  expect(el.querySelector(".say pre")).toBe(block);
  expect(block.textContent).toBe("a = 1\nb = 2");
  expect(texts(el, ".say > p")).toEqual(["So:", "Done"]);
});

test("a long letter folds too, later than a result, and folds again", () => {
  const el = view.open();
  const text = Array.from({ length: 60 }, (_, i) => `line ${i}`).join("\n");
  model.rows([read(1, { text }), read(2, { text: "x".repeat(9000), mono: true })]);
  const more = () => el.querySelectorAll(".more");
  expect(texts(el, ".more")).toEqual(["and 40 lines", "and 8,600 characters"]);

  more()[0].click();
  expect(el.querySelector(".mt").textContent).toBe(text);
  expect(document.activeElement).toBe(more()[0]);
  expect(more()[0].textContent).toBe("Show less");
  more()[0].click();
  expect(more()[0].textContent).toBe("and 40 lines");
});

test("a call of a sub-agent names the session it works in; a saved one says how to see it", () => {
  const el = view.open();
  const child = { id: "s-0007", name: "coder-2" };
  model.rows([call("call_0001", 1, { tool: "prompt-agent-coder", child })]);
  expect(texts(el, ".hold button")).toEqual(["coder-2 child"]);

  model.rows([call("call_0001", 2, { child, state: "completed" })], { after: 1 });
  model.dead = true;
  el.querySelector("textarea").focus();
  later(20);
  expect(el.querySelector(".hold button")).toBe(null);
  expect(el.querySelector(".hold").textContent).toBe("coder-2 child%transcript s-0007");
});

test("a turn that streams says for how long", () => {
  const el = view.open();
  const at = "2026-03-02T10:04:48Z";
  model.rows([turn(2, 1, { live: true, text: "So", at })], { head: { ...HEAD, status: "running" } });
  later(1100);

  expect(el.querySelector(".turn-h .r").textContent).toMatch(/^streaming · 2 characters · 0:1[23]$/);
});

test("Escape leads out of a row, and from the feed to the box", () => {
  const el = view.open();
  model.rows([read(1), call("call_0001", 2)]);
  el.querySelector("summary").focus();
  press(document.activeElement, "Escape");
  expect(document.activeElement.dataset.key).toBe("c:call_0001");

  press(document.activeElement, "Escape");
  expect(document.activeElement).toBe(el.querySelector("textarea"));
});

test("no key leaves the view, so that no shortcut of the notebook fires", () => {
  const heard = vi.fn();
  document.body.addEventListener("keydown", heard);
  const el = view.open();
  model.rows([mail(1)]);
  for (const target of [
    el.querySelector("textarea"),
    el.querySelector(".feed"),
    el.querySelector("button"),
  ])
    press(target, "d");

  expect(heard).not.toHaveBeenCalled();
  document.body.removeEventListener("keydown", heard);
});

test("arrows walk through the feed, Enter unfolds a call, R replies to a mail", () => {
  const el = view.open();
  model.rows([mail(1, { o: [1, 1], state: "delivered", turn: 1 }), call("call_0001", 2)]);
  const feed = el.querySelector(".feed");
  feed.focus();
  press(feed, "ArrowDown");
  expect(document.activeElement.dataset.key).toBe("m:1");
  press(document.activeElement, "ArrowDown");
  press(document.activeElement, "Enter");
  expect(el.querySelector("details").open).toBe(true);

  press(document.activeElement, "ArrowUp");
  press(document.activeElement, "r");
  expect(el.querySelector(".rto").textContent).toContain("Reply to you m-0001");
  expect(document.activeElement).toBe(el.querySelector("textarea"));
});

test("an empty view says how to begin", () => {
  const el = view.open();
  model.rows([], { upto: 0 });

  expect(el.querySelector(".empty").textContent).toBe("No mail yet.Write below, or %send rev …");
  model.rows([mail(1)]);
  expect(el.querySelector(".empty").hidden).toBe(true);
});

test("every view of a model shows the same, and a view drawn anew shows it again", () => {
  const one = view.open();
  const two = view.open();
  model.rows([mail(1)]);
  one.close();
  const three = view.open();

  expect(texts(two, ".mt")).toEqual(["letter 1"]);
  expect(texts(three, ".mt")).toEqual(["letter 1"]);
});

test("what is kept for a day without a kernel is hidden as long as a view of it is here", () => {
  const beside = document.createElement("div");
  beside.innerHTML = '<div class="postroom-kept" data-view="kept"></div><div class="postroom-kept" data-view="v2"></div>';
  document.body.append(beside);
  const [mine, other] = beside.children;
  const seen = (el) => getComputedStyle(el).display !== "none";
  expect(seen(mine)).toBe(true);

  const fresh = widget(new FakeModel({ view: "kept" }));
  const [one, two] = [fresh.open(), fresh.open()];
  expect([seen(mine), seen(other)]).toEqual([false, true]);
  one.close();
  expect(seen(mine)).toBe(false);
  two.close();
  expect(seen(mine)).toBe(true);
  beside.remove();
});
