import { describe, expect, it } from 'vitest';

import type { CompositionNode } from '../api/types';
import { nextSort, parseFilter, parseFilters, sortText } from './filters';
import { icicle, nodeSize, treemapTiles } from './layout';
import { kMostPixels, lastTop, pagesOf, rowAtScroll, scrollAtRow, scrollHeight } from './virtual_rows';

describe('a filter', () => {
  it('of bytes takes units, bounds and ranges', () => {
    expect(parseFilter('size', 'bytes', '> 64k')).toEqual({ column: 'size', op: '>', value: 65536 });
    expect(parseFilter('size', 'bytes', '1M..2M')).toEqual({ column: 'size', op: 'in', value: [1048576, 2097152] });
    expect(parseFilter('size', 'bytes', '4096')).toEqual({ column: 'size', op: '=', value: 4096 });
    expect(parseFilter('size', 'bytes', 'big')).toBeNull();
  });
  it('of addresses takes hexadecimal and decimal alike', () => {
    expect(parseFilter('address', 'address', '0x7f00')).toEqual({ column: 'address', op: '=', value: '0x7f00' });
    expect(parseFilter('address', 'address', '>= 32512')).toEqual({ column: 'address', op: '>=', value: '0x7f00' });
  });
  it('of times takes what the time axis shows; "never" is a value', () => {
    expect(parseFilter('begin', 'time', '1.5s..2s')).toEqual({ column: 'begin', op: 'in', value: [1.5e9, 2e9] });
    expect(parseFilter('end', 'time', 'never')).toEqual({ column: 'end', op: 'is', value: null });
  });
  it('of texts is a part of them, or all with =', () => {
    expect(parseFilter('site', 'text', 'train.py')).toEqual({ column: 'site', op: 'contains', value: 'train.py' });
    expect(parseFilter('owner', 'text', '= PTA@ops')).toEqual({ column: 'owner', op: '=', value: 'PTA@ops' });
    expect(parseFilter('owner', 'text', '!= x')).toEqual({ column: 'owner', op: '!=', value: 'x' });
  });
  it('that is not understood is named, the others hold', () => {
    const { conditions, wrong } = parseFilters({ size: 'big', step: '3', verdict: '0', born: '5-9', nothing: 'x' }, { size: 'bytes', step: 'int' });
    expect(wrong).toEqual(['size']);
    expect(conditions).toEqual([
      { column: 'step', op: '=', value: 3 }, { op: 'verdict', value: 0 }, { op: 'born_in', value: [5, 9] },
    ]);
  });
});

describe('sorting', () => {
  it('turns on each click and ends', () => {
    const once = nextSort([], 'size', false, true);
    const twice = nextSort(once, 'size', false, true);
    expect(once).toEqual([{ column: 'size', descending: true }]);
    expect(twice).toEqual([{ column: 'size', descending: false }]);
    expect(nextSort(twice, 'size', false, true)).toEqual([]);
  });
  it('takes several columns with Shift, in the order of the clicks', () => {
    const sort = nextSort(nextSort([], 'size', false, true), 'site', true, false);
    expect(sortText(sort)).toBe('size:desc,site:asc');
  });
});

describe('a long table', () => {
  const kRow = 26;
  it('is scrolled in pixels while it fits', () => {
    expect(scrollHeight(1000, kRow)).toBe(26_000);
    expect(rowAtScroll(260, 1000, kRow, 520)).toBe(10);
  });
  it('of ten million rows reaches every row with a bar the browser can draw', () => {
    const total = 10_000_000;
    expect(scrollHeight(total, kRow)).toBe(kMostPixels);
    expect(rowAtScroll(0, total, kRow, 520)).toBe(0);
    expect(rowAtScroll(kMostPixels - 520, total, kRow, 520)).toBe(total - 20); // the last 20 rows
    for (const top of [1, 12_345.5, 9_999_980]) expect(rowAtScroll(scrollAtRow(top, total, kRow, 520), total, kRow, 520)).toBeCloseTo(top, 3);
    expect(lastTop(5, kRow, 520)).toBe(0);
  });
  it('asks for the pages that are in sight', () => {
    expect(pagesOf({ top: 190, fit: 20 }, 1000, 200)).toEqual([0, 1]);
    expect(pagesOf({ top: 0, fit: 20 }, 5, 200)).toEqual([0]);
  });
});

function node(id: number, parent: number, value: number, base: number | null = null): CompositionNode {
  return { id, parent, name: String(id), detail: null, value, base, self: 0, blocks: 1, kind: 'frame', user: true, file: null, line: null, site: null, depth: 0 };
}

describe('an icicle', () => {
  const nodes = [node(0, -1, 100), node(1, 0, 75), node(2, 0, 25), node(3, 1, 30)];
  it('gives each node its share of its parent, a row a level', () => {
    const tiles = icicle(nodes, 0, 400, 20, false);
    expect(tiles.map((tile) => [tile.index, tile.x, tile.y, tile.width])).toEqual([
      [0, 0, 0, 400], [1, 0, 20, 300], [3, 0, 40, 120], [2, 300, 20, 100],
    ]);
  });
  it('zoomed to a node fills the width with it', () => {
    expect(icicle(nodes, 1, 400, 20, false)[0]).toMatchObject({ index: 1, width: 400, y: 0 });
  });
  it('folds library frames that only call one another, and keeps the user’s', () => {
    const library = (id: number, parent: number, value: number): CompositionNode => ({ ...node(id, parent, value), user: false });
    // All → five of the interpreter → the user's → four of a library, of which the last holds half → half.
    const chain = [node(0, -1, 100), ...[1, 2, 3, 4, 5].map((id) => library(id, id - 1, 100)), node(6, 5, 100),
      library(7, 6, 100), library(8, 7, 100), library(9, 8, 100), library(10, 9, 50)];
    const tiles = icicle(chain, 0, 400, 20, false, 1, true);
    expect(tiles.map((tile) => [tile.index, tile.y, tile.folded?.count ?? 1])).toEqual([
      // Three of one width are no gain.
      [0, 0, 1], [1, 20, 5], [6, 40, 1], [7, 60, 1], [8, 80, 1], [9, 100, 1], [10, 120, 1],
    ]);
    expect(tiles[1]?.folded?.last).toBe(5);
    // Zoomed to a folded row all of it is shown.
    expect(icicle(chain, 5, 400, 20, false, 1, true)[0]).toMatchObject({ index: 5, y: 0 });
    expect(icicle(chain, 0, 400, 20, false)).toHaveLength(11);
  });
  it('of a difference is as wide as the larger of old and new, and stays within its parent', () => {
    expect(nodeSize(node(1, 0, -40, 100), true)).toBe(100);
    expect(nodeSize(node(1, 0, 40, 100), true)).toBe(140);
    // One child grew by 50, the other shrank by 50: the parent did not change, the children overfill it.
    const tiles = icicle([node(0, -1, 0, 100), node(1, 0, 50, 0), node(2, 0, -50, 100)], 0, 300, 20, true);
    const widths = tiles.slice(1).map((tile) => tile.width);
    expect(widths.reduce((a, b) => a + b, 0)).toBeCloseTo(300);
    expect(widths[0]).toBeCloseTo(100); // 50 : 100
  });
});

describe('a treemap', () => {
  it('gives leaves areas in proportion to their bytes, within their parents', () => {
    const nodes = [node(0, -1, 100), node(1, 0, 60), node(2, 0, 40)];
    const tiles = treemapTiles(nodes, 0, 1000, 600, false);
    const area = (index: number): number => tiles.filter((tile) => tile.index === index).reduce((sum, tile) => sum + tile.width * tile.height, 0);
    expect(area(1) / area(2)).toBeCloseTo(1.5, 1);
    for (const tile of tiles) {
      expect(tile.x).toBeGreaterThanOrEqual(0);
      expect(tile.x + tile.width).toBeLessThanOrEqual(1000);
      expect(tile.y + tile.height).toBeLessThanOrEqual(600);
    }
  });
});
