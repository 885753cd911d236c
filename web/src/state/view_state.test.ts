import { describe, expect, it } from 'vitest';

import { decodeView, encodeView, kOpening, type ViewState } from './view_state';
import { ZoomHistory } from './zoom_history';

const kElsewhere: ViewState = {
  pool: 2,
  panes: [0, 2, 5],
  time: [1_000_000, 1_200_000_123],
  bytes: [0, 26_214_400],
  order: 'lifetime',
  colour: 'owner',
  sample: 'floor',
  tidy: false,
  parts: true,
  hidden: [0, 3, 7],
  tab: 'composition',
  verdict: '3f9a1c20',
  site: 12,
  block: 5091,
  pins: [17],
  at: -1,
  against: 4_000_000,
  by: 'stack_inverted',
  shape: 'treemap',
  weight: 'byte_time',
  zoom: '44',
  search: 'a&b=c #d 中',
  blocks: { sort: [{ column: 'size', descending: true }, { column: 'begin', descending: false }], filters: { size: '> 64k', site: 'x=y&z' } },
  events: { sort: [], filters: { kind: 'free' } },
  sites: { sort: [{ column: 'bytes_per_step', descending: true }], filters: {} },
  base: '0@step:3',
  other: '1@peak',
  compareBy: 'owner',
};

describe('a link', () => {
  it('holds the whole view', () => {
    expect(decodeView(encodeView(kElsewhere))).toEqual(kElsewhere);
    expect(decodeView(`#${encodeView(kElsewhere)}`)).toEqual(kElsewhere);
  });
  it('is empty for the opening view', () => {
    expect(encodeView(kOpening)).toBe('');
    expect(decodeView('')).toEqual(kOpening);
  });
  it('of any text opens a view, what cannot be read left out', () => {
    expect(decodeView('#order=sideways&t=9-3&m=x&block=-1&site=1e9&pin=a.b&tab=&hide=1.x.2')).toEqual({ ...kOpening, hidden: [1, 2] });
    expect(decodeView('#%zz&&&==&blocks.sort=__proto__,size&blocks.toString=3').blocks.sort).toEqual([
      { column: '__proto__', descending: false }, { column: 'size', descending: false },
    ]);
    expect(decodeView(`#search=${'x'.repeat(100_000)}`).search).toHaveLength(512);
  });
});

describe('the history of windows', () => {
  const a = { time: null, bytes: null };
  const b = { time: [0, 10] as const, bytes: null };
  const c = { time: [2, 3] as const, bytes: null };
  it('goes back and forth as a browser does', () => {
    const history = new ZoomHistory();
    expect(history.canGoBack).toBe(false);
    history.leave(a);
    history.leave(b);
    expect(history.back(c)).toEqual(b);
    expect(history.back(b)).toEqual(a);
    expect(history.back(a)).toBeNull();
    expect(history.forward(a)).toEqual(b);
  });
  it('forgets what lay ahead when one turns off', () => {
    const history = new ZoomHistory();
    history.leave(a);
    history.back(b);
    history.leave(a);
    expect(history.canGoForward).toBe(false);
  });
});
