import { expect, test } from "vitest";
import { grown, Range } from "../../../widgets/postroom_widgets/static/range.js";

const rows = (n) => Array.from({ length: n }, (_, i) => ({ key: `m:${i}` }));

test("the page is the last 250 rows, and follows the end", () => {
  const range = new Range();

  expect(range.of(rows(10))).toEqual([0, 10]);
  expect(range.of(rows(10_000))).toEqual([9750, 10_000]);
});

test("a page that is held stays where it is while rows come in below, up to 375 rows", () => {
  const range = new Range();
  range.hold({ key: "m:100" });

  expect(range.of(rows(350))).toEqual([100, 350]);
  expect(range.of(rows(450))).toEqual([100, 450]);
  expect(range.of(rows(10_000))).toEqual([100, 475]);
  range.follow();
  expect(range.of(rows(10_000))).toEqual([9750, 10_000]);
});

test("earlier rows are shown as soon as they are there, however late they come", () => {
  const range = new Range();
  range.hold({ key: "m:0" });
  range.wanted = 250;
  expect(range.of(rows(100))).toEqual([0, 100]);

  const above = Array.from({ length: 200 }, (_, i) => ({ key: `e:${i}` }));
  expect(range.of([...above, ...rows(100)])).toEqual([0, 300]);
  expect(range.wanted).toBe(50);
});

test("the page goes down step by step, and to any row at once", () => {
  const range = new Range();
  range.around(rows(10_000), 5000);
  expect(range.of(rows(10_000))).toEqual([4875, 5250]);
  range.down(rows(10_000));
  expect(range.of(rows(10_000))).toEqual([5000, 5375]);
});

test("a row that is gone is no place to stay: the page follows the end", () => {
  const range = new Range();
  range.hold({ key: "gone" });

  expect(range.of(rows(350))).toEqual([100, 350]);
  expect(range.anchor).toBe(null);
});

test("a page grows around where somebody looks, as far as the time goes", () => {
  const taken = [];
  const enough = () => taken.length >= 5;

  expect(grown(7, 0, 10, (at) => taken.push(at), enough)).toEqual([5, 10]);
  expect(taken).toEqual([7, 8, 9, 6, 5]);
});

test("at least the row in sight is drawn, however little time there is", () => {
  const taken = [];

  expect(grown(9, 0, 10, (at) => taken.push(at), () => true)).toEqual([9, 10]);
});
