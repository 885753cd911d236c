import { describe, expect, it } from 'vitest';

import { decodeGraph, decodeLines, type Graph, hitGraph, kMerged, sliceAt } from '../api/wire';
import type { LegendClass } from '../api/types';
import { legendColours, paletteSlots, pixelColours } from './colours';
import { laneHit, laneRows } from './lanes';
import { bandsOf, columnSlices, rasterGraph } from './raster';
import { fitRange, frameRange, panRange, zoomRange } from './viewport';

interface Slice {
  begin: number;
  items: [bytes: number, block: number, cls: number][];
}

/** A graph of slices written by hand, as the server would send it. */
function graphOf(slices: Slice[], t1: number, m1: number, m0 = 0): ArrayBuffer {
  const items = slices.flatMap((slice) => slice.items);
  const pad8 = (n: number): number => Math.ceil(n / 8) * 8;
  const s = slices.length;
  const buffer = new ArrayBuffer(64 + 48 * s + pad8(s * 4) + pad8((s + 1) * 4) + items.length * 8 + pad8(items.length * 4) + pad8(items.length));
  const view = new DataView(buffer);
  view.setUint32(0, 0x3147534d, true);
  view.setFloat64(8, slices[0]?.begin ?? 0, true);
  view.setFloat64(16, t1, true);
  view.setFloat64(24, m0, true);
  view.setFloat64(32, m1, true);
  view.setUint32(40, s, true);
  view.setUint32(44, items.length, true);
  slices.forEach((slice, i) => {
    const total = slice.items.reduce((sum, item) => sum + item[0], 0);
    [slice.begin, slice.begin, total, total, total, 0].forEach((value, k) => view.setFloat64(64 + (k * s + i) * 8, value, true));
  });
  let offset = 64 + 48 * s;
  slices.forEach((_slice, i) => view.setUint32(offset + 4 * i, 100 + i, true));
  offset += pad8(s * 4);
  let first = 0;
  slices.forEach((slice, i) => {
    view.setUint32(offset + 4 * i, first, true);
    first += slice.items.length;
  });
  view.setUint32(offset + 4 * s, first, true);
  offset += pad8((s + 1) * 4);
  items.forEach((item, i) => view.setFloat64(offset + 8 * i, item[0], true));
  offset += items.length * 8;
  items.forEach((item, i) => view.setUint32(offset + 4 * i, item[1], true));
  offset += pad8(items.length * 4);
  items.forEach((item, i) => view.setUint8(offset + i, item[2]));
  return buffer;
}

// Time 0..10, bytes 0..100: a block 60 high from 0 on; at 5 one of 20 and a merged 10 come on top.
const kTwo: Slice[] = [
  { begin: 0, items: [[60, 7, 1]] },
  { begin: 5, items: [[60, 7, 1], [20, 8, 2], [10, kMerged, 3]] },
];
const kColours = Uint32Array.from([0xff000000, 0xff0000ff, 0xff00ff00, 0xffff0000]);
const paint = (graph: Graph): Uint32Array => rasterGraph(graph, 10, 100, { colours: kColours, floor: false });

describe('the lanes', () => {
  const labels = { steps: 'Steps', phases: 'Phases', marks: 'Marks', more: null };
  const curve = { label: 'npu:0 driver', values: [], time: [0, 1] as const, pool: 3 };
  it('have their places by what the input has, whatever the window shows', () => {
    expect(laneRows({ phases: false, marks: false }, [], labels).map((row) => row.kind)).toEqual(['steps']);
    const rows = laneRows({ phases: true, marks: true }, [curve], labels);
    expect(rows.map((row) => row.kind)).toEqual(['steps', 'phases', 'marks', 'counter']);
    // One below the other, without gaps.
    rows.slice(1).forEach((row, i) => expect(row.top).toBe((rows[i]?.top ?? 0) + (rows[i]?.height ?? 0)));
  });
  it('end with what a click would bring', () => {
    const rows = laneRows({ phases: false, marks: false }, [curve], { ...labels, more: '▸ 6 more' });
    const last = rows[rows.length - 1];
    expect(last?.kind).toBe('more');
    expect(laneHit(null, rows, 0.5, (last?.top ?? 0) + 1, 0)?.lane).toBe('more');
  });
  it('tell whose curve was clicked before its values are there', () => {
    const rows = laneRows({ phases: false, marks: false }, [curve], labels);
    expect(laneHit(null, rows, 0.5, (rows[1]?.top ?? 0) + 1, 0)?.pool).toBe(3);
  });
});

describe('the answer of graph', () => {
  it('is laid out as the document says', () => {
    const graph = decodeGraph(graphOf(kTwo, 10, 100));
    expect(Array.from(graph.begin)).toEqual([0, 5]);
    expect(Array.from(graph.total)).toEqual([60, 90]);
    expect(Array.from(graph.state)).toEqual([100, 101]);
    expect(Array.from(graph.first)).toEqual([0, 1, 4]);
    expect(Array.from(graph.bytes)).toEqual([60, 60, 20, 10]);
    expect(Array.from(graph.cls)).toEqual([1, 1, 2, 3]);
  });
  it('cut short or of another kind is refused', () => {
    expect(() => decodeGraph(graphOf(kTwo, 10, 100).slice(0, 150))).toThrow();
    expect(() => decodeGraph(new ArrayBuffer(200))).toThrow();
    expect(() => decodeLines(new ArrayBuffer(8))).toThrow();
  });
  it('tells what lies at a place', () => {
    const graph = decodeGraph(graphOf(kTwo, 10, 100));
    expect(hitGraph(graph, 7, 65)).toMatchObject({ block: 8, from: 60, to: 80, total: 90, state: 101 });
    expect(hitGraph(graph, 7, 85)).toMatchObject({ block: null, cls: 3, from: 80, to: 90 });
    expect(hitGraph(graph, 2, 65)).toBeNull(); // above the stack
    expect(hitGraph(graph, 11, 5)).toBeNull(); // after the answer's window
    expect([0, 4.99, 5, 10].map((t) => sliceAt(graph, t))).toEqual([0, 0, 1, 1]);
  });
});

describe('the picture', () => {
  // Columns of a pixel, 1 byte a row: heights can be counted.
  it('of each column is as high as its bytes: bands add up', () => {
    const pixels = paint(decodeGraph(graphOf(kTwo, 10, 100)));
    const height = (x: number): number => Array.from({ length: 100 }, (_u, y) => pixels[y * 10 + x]).filter((p) => p !== 0).length;
    expect(height(0)).toBe(60);
    expect(height(4)).toBe(60);
    expect(height(5)).toBe(90);
    expect(height(9)).toBe(90);
  });
  it('has every block of a pixel or more', () => {
    const slices: Slice[] = [{ begin: 0, items: Array.from({ length: 50 }, (_u, i) => [2, i, i % 2 === 0 ? 1 : 2] as [number, number, number]) }];
    const pixels = paint(decodeGraph(graphOf(slices, 10, 100)));
    // Bottom up, rows come in pairs, of red and of green in turn.
    const channel = Array.from({ length: 100 }, (_u, y) => ((pixels[(99 - y) * 10] ?? 0) & 0xff) > 0);
    expect(channel).toEqual(Array.from({ length: 100 }, (_u, y) => Math.floor(y / 2) % 2 === 0));
  });
  it('does not drift: a thousand equal thin bands end where their sum does', () => {
    const slices: Slice[] = [{ begin: 0, items: Array.from({ length: 1000 }, (_u, i) => [0.0731, i, 1] as [number, number, number]) }];
    const pixels = paint(decodeGraph(graphOf(slices, 10, 100)));
    const filled = Array.from({ length: 100 }, (_u, y) => pixels[y * 10]).filter((p) => p !== 0).length;
    expect(filled).toBe(73); // 73.1 rows
  });
  it('shows the highest instant of a pixel, or the lowest when asked', () => {
    const slices: Slice[] = [
      { begin: 0, items: [[10, 1, 1]] }, { begin: 0.2, items: [[90, 2, 1]] }, { begin: 0.4, items: [[30, 3, 1]] },
    ];
    const graph = decodeGraph(graphOf(slices, 10, 100));
    expect(columnSlices(graph, 10, false)[0]).toBe(1);
    expect(columnSlices(graph, 10, true)[0]).toBe(0);
    expect(columnSlices(graph, 10, false)[5]).toBe(2);
  });
  it('of a window above the ground begins where the window does', () => {
    const pixels = rasterGraph(decodeGraph(graphOf([{ begin: 0, items: [[60, 7, 1], [40, 8, 2]] }], 10, 100, 50)), 1, 50, { colours: kColours, floor: false });
    const red = Array.from({ length: 50 }, (_u, y) => ((pixels[y] ?? 0) & 0xff) > 0).filter(Boolean).length;
    expect(red).toBe(10); // 50..60 of the first block
  });
  it('finds a block again wherever it is drawn, one band where nothing moved', () => {
    const graph = decodeGraph(graphOf(kTwo, 10, 100));
    expect(bandsOf(graph, 7)).toEqual([{ left: 0, right: 10, from: 0, to: 60 }]);
    expect(bandsOf(graph, 8)).toEqual([{ left: 5, right: 10, from: 60, to: 80 }]);
    expect(bandsOf(graph, 99)).toEqual([]);
  });
});

describe('colours', () => {
  const named = (id: number, hue: number): LegendClass => ({ id, name: `s${id}`, detail: null, key: { site: id }, bytes: 0, peak: 0, blocks: 1, hue });
  it('are the name’s own, and no two classes share one while there are enough', () => {
    const slots = paletteSlots(Array.from({ length: 24 }, (_u, i) => named(i + 1, 30)));
    expect(new Set(slots).size).toBe(24);
    expect(paletteSlots([named(1, 200), named(2, 10)])[0]).toBe(paletteSlots([named(1, 200)])[0]);
  });
  it('are red for what is accused, and for nothing else', () => {
    const classes = [named(0, 0), ...Array.from({ length: 24 }, (_u, i) => named(i + 1, i * 15))];
    const colours = legendColours('site', classes, new Set([5]), 'light');
    const red = colours.map(([r, g, b]) => r > 180 && g < 100 && b < 100);
    expect(red.flatMap((isRed, i) => (isRed ? [i] : []))).toEqual([5]);
    expect(pixelColours(classes, colours)[5]).toBe(((255 << 24) | ((colours[5]?.[2] ?? 0) << 16) | ((colours[5]?.[1] ?? 0) << 8) | (colours[5]?.[0] ?? 0)) >>> 0);
  });
});

describe('windows', () => {
  it('zoom around what is under the cursor', () => {
    const next = zoomRange([0, 100], 25, 0.5, [0, 100], 1);
    expect(next).toEqual([12.5, 62.5]);
    expect((25 - next[0]) / (next[1] - next[0])).toBeCloseTo(0.25); // still a quarter in
  });
  it('never leave the run, nor become shorter than the shortest', () => {
    expect(zoomRange([0, 100], 50, 8, [0, 100], 1)).toEqual([0, 100]);
    expect(zoomRange([0, 100], 50, 1e-9, [0, 100], 4)).toEqual([48, 52]);
    expect(panRange([10, 20], -50, [0, 100])).toEqual([0, 10]);
    expect(panRange([10, 20], 500, [0, 100])).toEqual([90, 100]);
    expect(fitRange([-50, 500], [0, 100])).toEqual([0, 100]);
  });
  it('frame what is shown with a margin', () => {
    expect(frameRange([40, 60], 0.5, [0, 100], 1)).toEqual([30, 70]);
    expect(frameRange([50, 50], 0.5, [0, 100], 10)).toEqual([40, 60]);
  });
});
