import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { call, FakeModel, HEAD, later, mail, press, texts, turn, widget } from "./fakes.js";

let model;
let view;
let el;

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-03-02T10:05:00Z") });
  sessionStorage.clear();
  model = new FakeModel();
  view = widget(model);
  el = view.open();
  model.rows([], { upto: 0 });
});

afterEach(() => {
  view.close();
  document.body.replaceChildren();
  vi.useRealTimers();
});

const RUNNING = { ...HEAD, status: "running", turn: 2, calls: 1 };
const named = (name) => el.querySelector(`[aria-label^="${name}"]`);
const started = "2026-03-02T10:04:19Z";
let version = 0;

/** Lay a call in, as the kernel would. */
function show(fields, head = RUNNING) {
  const v = ++version;
  model.rows([call("call_0001", v, fields)], { after: v - 1, head });
}

beforeEach(() => {
  version = 0;
});

// ── Cancel ──

test("a running call is cancelled by its button, once", () => {
  show({ started });
  named("Cancel run_tests").click();
  later(20);

  expect(model.of("cancel")).toEqual([{ op: "cancel", id: expect.any(String), call: "call_0001" }]);
  expect(named("Cancel run_tests").disabled).toBe(true);
  show({ state: "cancelled", error: "cancelled: the call was ended" });
  expect(named("Cancel run_tests")).toBe(null);
  expect(el.querySelector(".stt").textContent).toBe("cancelled");
});

test("a call that has only just begun gets no second line until a second has passed", () => {
  show({ started: "2026-03-02T10:05:00Z" });
  expect(el.querySelector(".prog").hidden).toBe(true);
  expect(el.querySelector(".strip").hidden).toBe(true);

  later(2100);
  expect(el.querySelector(".prog").hidden).toBe(false);
  expect(el.querySelector(".strip").textContent).toContain("run_tests0:02");
});

test("a report moves the bar and takes no button away from under a finger", () => {
  show({ started, progress: { done: 2, total: 8 } });
  const button = named("Cancel run_tests");
  show({ started, progress: { done: 5, total: 8, text: "19 commits left" } });

  expect(named("Cancel run_tests")).toBe(button);
  expect(el.querySelector(".prog [role=progressbar]").getAttribute("aria-valuenow")).toBe("63");
  expect(el.querySelector(".prog > .clip").textContent).toBe("5 of 8 · 19 commits left");
});

test("a report without numbers is its words, without a bar", () => {
  show({ started, progress: { text: "retry 1 of 2" } });

  expect(el.querySelector(".prog [role=progressbar]")).toBe(null);
  expect(el.querySelector(".prog > .clip").textContent).toBe("retry 1 of 2");
});

test("a detached call says why and where its result comes", () => {
  show({ started, hold: "still running after 10s" });

  expect(el.querySelector(".hold").textContent).toBe(
    "placeholder: still running after 10s→its result comes as mail",
  );
  expect(named("Cancel run_tests")).not.toBe(null);
});

// ── Approve and deny ──

const ASKED = { state: "deferred", approval: "ap-0001", reason: "touches production" };

test("a call that waits for a person is approved where it stands (M-97)", () => {
  show(ASKED);
  expect(el.querySelector(".ask").textContent).toBe(
    "touches production · Runs only if you approve.ApproveDeny…Edit arguments",
  );
  named("Approve run_tests").click();
  later(20);

  expect(model.of("approve")).toEqual([
    { op: "approve", id: expect.any(String), approval: "ap-0001" },
  ]);
  expect(named("Approve run_tests").disabled).toBe(true);
  show({ started, decided: "approved in a view" });
  expect(el.querySelector(".hold").textContent).toBe("approved in a view");
});

test("a question that expires says until when, and in its last hour how long is left", () => {
  show({ ...ASKED, until: "2026-03-02T10:06:42Z" }, { ...HEAD, asks: 1 });
  expect(el.querySelector(".ask .grow").textContent).toMatch(/ approve. · 1:42 left$/);
  later(2000);
  expect(el.querySelector(".ask .grow").textContent).toMatch(/ · 1:40 left$/);
  later(100_000);
  expect(el.querySelector(".ask .grow").textContent).toMatch(/ · expired$/);

  show({ ...ASKED, until: "2026-03-02T11:30:00Z" });

  expect(el.querySelector(".ask .grow").textContent).toMatch(/ approve. · until 2026-03-02 \d\d:\d\d$/);
});

test("a denial opens a reason in place, and Escape goes back (M-97)", () => {
  show(ASKED);
  named("Deny run_tests").click();
  expect(document.activeElement).toBe(named("reason"));
  press(named("reason"), "Escape");
  expect(named("reason")).toBe(null);
  expect(document.activeElement).toBe(named("Deny run_tests"));

  named("Deny run_tests").click();
  named("reason").value = " not on a Friday ";
  el.querySelector("form.ask").requestSubmit();
  later(20);
  expect(model.of("deny")).toEqual([
    { op: "deny", id: expect.any(String), approval: "ap-0001", reason: "not on a Friday" },
  ]);
  expect(named("Deny run_tests").disabled).toBe(true);
});

test("a reason that is being written outlives a change of its row", () => {
  show(ASKED);
  named("Deny run_tests").click();
  named("reason").value = "not on";
  named("reason").dispatchEvent(new Event("input"));
  show({ ...ASKED, hold: "asked you first" });

  expect(named("reason").value).toBe("not on");
});

const field = (name) => el.querySelector(`.arg [aria-label="${name}"]`);
const yes = () => el.querySelector("form.ask [type=submit]");
function write(name, text) {
  field(name).value = text;
  field(name).dispatchEvent(new Event("input"));
}

test("arguments are edited line by line as JSON, and only what differs is sent (M-97)", () => {
  show({ ...ASKED, args: { suite: "fast", workers: 4, flags: ["-x"] } });
  named("Edit arguments of run_tests").click();
  expect(document.activeElement).toBe(field("suite"));
  expect([field("suite").value, field("workers").value]).toEqual(['"fast"', "4"]);
  expect(yes().textContent).toBe("Approve");

  write("workers", "12345678901234567890");
  write("flags", '[ "-x" ]');
  expect(yes().textContent).toBe("Approve as edited");
  expect(texts(el, ".arg.edited > code")).toEqual(["workers"]);
  expect(el.querySelector(".arg.edited .was").textContent).toBe("asked for 4Restore");

  el.querySelector("form.ask").requestSubmit();
  later(20);
  expect(model.of("approve")).toEqual([
    {
      op: "approve",
      id: expect.any(String),
      approval: "ap-0001",
      edits: { workers: "12345678901234567890" },
    },
  ]);
});

test("what is not JSON cannot be approved, and says how to write it", () => {
  show(ASKED);
  named("Edit arguments of run_tests").click();
  write("suite", "slow");

  expect(el.querySelector(".arg .refusal").textContent).toBe('Not JSON. Text needs quotes: "…"');
  expect(field("suite").getAttribute("aria-invalid")).toBe("true");
  expect(yes().disabled).toBe(true);
  el.querySelector("form.ask").requestSubmit();
  expect(model.of("approve")).toEqual([]);

  named("Restore suite").click();
  expect(field("suite").value).toBe('"fast"');
  expect(yes().disabled).toBe(false);
  expect(yes().textContent).toBe("Approve");
});

test("what was typed over an argument outlives a change of its row, and Escape drops it", () => {
  show(ASKED);
  named("Edit arguments of run_tests").click();
  write("suite", '"slow"');
  show({ ...ASKED, hold: "asked you first" });
  expect(field("suite").value).toBe('"slow"');

  press(field("suite"), "Escape");
  expect(document.activeElement).toBe(named("Edit arguments of run_tests"));
  named("Edit arguments of run_tests").click();
  expect(field("suite").value).toBe('"fast"');
});

test("a call without arguments offers none to edit", () => {
  show({ ...ASKED, args: {} });

  expect(named("Edit arguments")).toBe(null);
  expect(named("Approve run_tests")).not.toBe(null);
});

test("a lost race is told in the row, and stays there", () => {
  show(ASKED);
  named("Approve run_tests").click();
  later(20);
  const words = "ap-0001 was already denied by %deny; that stands.";
  model.say({ op: "refused", id: model.of("approve")[0].id, words });
  expect(el.querySelector(".told").textContent).toBe(words);
  expect(named("Approve run_tests").disabled).toBe(false);

  show({ state: "denied", decided: "denied by %deny", error: "not approved" });
  expect(el.querySelector(".told").textContent).toBe(words);
});

test("the focus stays in the row when its button is gone, never with the notebook", () => {
  show(ASKED);
  named("Approve run_tests").focus();
  named("Approve run_tests").click();
  later(20);

  expect(document.activeElement.dataset.key).toBe("c:call_0001");
});

test("nothing can be pressed once the kernel is gone", () => {
  show(ASKED);
  model.dead = true;
  named("Approve run_tests").click();
  later(20);

  expect(named("Approve run_tests")).toBe(null);
  expect(el.querySelector(".strip").hidden).toBe(true);
  expect(el.querySelector(".call .hold").textContent).toContain("Runs only if you approve.");
});

// ── Pause and resume ──

test.each([
  ["running", "Pause", "pause"],
  ["waiting", "Pause", "pause"],
  ["idle", "Pause", "pause"],
  ["paused", "Resume", "resume"],
  ["failed", "Resume", "resume"],
  ["capped", "Resume", "resume"],
  ["ready", "Resume", "resume"],
])("a session that is %s offers %s", (status, word, op) => {
  model.rows([], { upto: 0, head: { ...HEAD, status } });
  const button = named(`${word} rev`);
  button.click();
  later(20);

  expect(model.of(op)).toEqual([{ op, id: expect.any(String) }]);
  expect(button.disabled).toBe(true);
  model.say({ op: "ack", id: model.of(op)[0].id });
  expect(button.disabled).toBe(false);
});

test("the status says how many calls are waited for, and who waits for you", () => {
  const status = () => el.querySelector("[role=status]").textContent;
  model.rows([], { upto: 0, head: { ...HEAD, status: "waiting", calls: 2 } });
  expect(status()).toBe("waiting · 2 calls");
  model.rows([], { upto: 0, head: { ...HEAD, status: "idle", asks: 1 } });
  expect(status()).toBe("idle · 1 call waits for you");
  expect(el.querySelector(".head .st").className).toBe("st waiting");
});

test("two questions about one tool are told apart, by name and on a narrow page", () => {
  const two = [1, 2].map((n) =>
    call(`call_000${n}`, n, { ...ASKED, args: { target: "ab"[n - 1] }, o: [2, 2 ** 40 + n] }),
  );
  model.rows(two, { head: RUNNING });

  const labels = [...el.querySelectorAll(".ask button")].map((one) => one.getAttribute("aria-label"));
  expect(labels).toEqual([
    'Approve run_tests target="a"',
    'Deny run_tests target="a"',
    'Edit arguments of run_tests target="a"',
    'Approve run_tests target="b"',
    'Deny run_tests target="b"',
    'Edit arguments of run_tests target="b"',
  ]);
  expect(texts(el, ".call.asks .args")).toEqual(['target="a"', 'target="b"']);
});

// ── The running strip ──

test("the strip names every open call and Show goes from one to the next", () => {
  const gone = vi.fn();
  Element.prototype.scrollIntoView = gone;
  model.rows(
    [
      call("call_0001", 1, { started, progress: { done: 5, total: 8 } }),
      call("call_0002", 2, { ...ASKED, tool: "deploy", o: [2, 2 ** 40 + 2] }),
      call("call_0003", 3, { state: "completed", tool: "done", o: [2, 2 ** 40 + 3] }),
      turn(3, 4, { text: "meanwhile" }),
      mail(5),
    ],
    { head: RUNNING },
  );

  expect(texts(el, ".strip .one")).toEqual(["run_tests63 % · 0:41", 'deploysuite="fast"waiting for you']);
  el.querySelector(".strip .link").click();
  expect(document.activeElement.dataset.key).toBe("c:call_0001");
  el.querySelector(".strip .link").click();
  expect(document.activeElement.dataset.key).toBe("c:call_0002");
  expect(gone).toHaveBeenCalledTimes(2);
});

test("a long strip is cut with a number", () => {
  const rows = Array.from({ length: 6 }, (_, i) =>
    call(`call_000${i}`, i + 1, { started, o: [2, 2 ** 40 + i] }),
  );
  model.rows(rows, { head: { ...RUNNING, calls: 6 } });

  expect(texts(el, ".strip .one").length).toBe(4);
  expect(el.querySelector(".strip").textContent).toContain("and 2 more calls");
});

test.each([
  ["completed", "result of the call in turn 2"],
  ["denied", "denied call of turn 2"],
  ["timed_out", "timed out call of turn 2"],
])("mail of a call that is %s says %s", (result, words) => {
  model.rows([mail(1, { tone: "tool", result, turn_of_call: 2, call: "call_0001" })]);

  expect(texts(el, ".mh > .meta")).toEqual([words]);
});

test("how it was decided stands with the placeholder, on one line", () => {
  show({ state: "completed", hold: "asked you first", decided: "approved in a view" });

  expect(texts(el, ".hold")).toEqual(["approved in a view · placeholder: asked you first"]);
});
