// The two binary answers (docs/view-api.md §3 and §4) as typed arrays laid over the received bytes.

export interface Lines {
  width: number;
  series: { min: Float64Array; max: Float64Array; last: Float64Array }[];
}

export interface Graph {
  /** Slices are pixel columns, drawn as they stood at one of their instants; else exact instants. */
  columns: boolean;
  /** Bands were merged to keep the answer small. */
  reduced: boolean;
  t0: number;
  t1: number;
  m0: number;
  m1: number;
  mergedWidth: number;
  mergedHeight: number;
  slices: number;
  items: number;
  begin: Float64Array;
  at: Float64Array;
  total: Float64Array;
  low: Float64Array;
  high: Float64Array;
  base: Float64Array;
  /** The state that is drawn, for `locate`: several events may share an instant. */
  state: Uint32Array;
  first: Uint32Array;
  bytes: Float64Array;
  block: Uint32Array;
  cls: Uint8Array;
}

export const kMerged = 0xffffffff;
const kLinesMagic = 0x314c534d; // "MSL1"
const kGraphMagic = 0x3147534d; // "MSG1"

const pad8 = (bytes: number): number => Math.ceil(bytes / 8) * 8;

export function decodeLines(buffer: ArrayBuffer): Lines {
  const view = new DataView(buffer);
  if (buffer.byteLength < 16 || view.getUint32(0, true) !== kLinesMagic) throw new Error('lines: not an answer');
  const count = view.getUint32(4, true);
  const width = view.getUint32(8, true);
  if (buffer.byteLength < 16 + count * width * 24) throw new Error('lines: cut short');
  const series: Lines['series'] = [];
  let offset = 16;
  const take = (): Float64Array => {
    const array = new Float64Array(buffer, offset, width);
    offset += width * 8;
    return array;
  };
  for (let i = 0; i < count; i += 1) series.push({ min: take(), max: take(), last: take() });
  return { width, series };
}

export function encodeLines(lines: Lines): ArrayBuffer {
  const buffer = new ArrayBuffer(16 + lines.series.length * lines.width * 24);
  const view = new DataView(buffer);
  view.setUint32(0, kLinesMagic, true);
  view.setUint32(4, lines.series.length, true);
  view.setUint32(8, lines.width, true);
  lines.series.forEach((series, i) => {
    const offset = 16 + i * lines.width * 24;
    [series.min, series.max, series.last].forEach((values, k) => {
      new Float64Array(buffer, offset + k * lines.width * 8, lines.width).set(values);
    });
  });
  return buffer;
}

export function decodeGraph(buffer: ArrayBuffer): Graph {
  const view = new DataView(buffer);
  if (buffer.byteLength < 64 || view.getUint32(0, true) !== kGraphMagic) throw new Error('graph: not an answer');
  const flags = view.getUint32(4, true);
  const slices = view.getUint32(40, true);
  const items = view.getUint32(44, true);
  const size = 64 + 6 * slices * 8 + pad8(slices * 4) + pad8((slices + 1) * 4) + items * 8 + pad8(items * 4) + items;
  if (buffer.byteLength < size) throw new Error('graph: cut short');
  let offset = 64;
  const doubles = (count: number): Float64Array => {
    const array = new Float64Array(buffer, offset, count);
    offset += count * 8;
    return array;
  };
  const words = (count: number): Uint32Array => {
    const array = new Uint32Array(buffer, offset, count);
    offset += pad8(count * 4);
    return array;
  };
  return {
    columns: (flags & 1) !== 0,
    reduced: (flags & 2) !== 0,
    t0: view.getFloat64(8, true),
    t1: view.getFloat64(16, true),
    m0: view.getFloat64(24, true),
    m1: view.getFloat64(32, true),
    mergedWidth: view.getFloat32(48, true),
    mergedHeight: view.getFloat32(52, true),
    slices,
    items,
    begin: doubles(slices),
    at: doubles(slices),
    total: doubles(slices),
    low: doubles(slices),
    high: doubles(slices),
    base: doubles(slices),
    state: words(slices),
    first: words(slices + 1),
    bytes: doubles(items),
    block: words(items),
    cls: new Uint8Array(buffer, offset, items),
  };
}

/** The picture without the blocks of other classes: what is left sinks to the bottom. */
export function onlyClasses(graph: Graph, classes: ReadonlySet<number>): Graph {
  const kept: number[] = [];
  const first = new Uint32Array(graph.slices + 1);
  const total = new Float64Array(graph.slices);
  for (let slice = 0; slice < graph.slices; slice += 1) {
    for (let item = graph.first[slice] ?? 0; item < (graph.first[slice + 1] ?? 0); item += 1) {
      if (!classes.has(graph.cls[item] ?? 0)) continue;
      kept.push(item);
      total[slice] = (total[slice] ?? 0) + (graph.bytes[item] ?? 0);
    }
    first[slice + 1] = kept.length;
  }
  return {
    ...graph,
    items: kept.length,
    total,
    base: new Float64Array(graph.slices),
    first,
    bytes: Float64Array.from(kept, (item) => graph.bytes[item] ?? 0),
    block: Uint32Array.from(kept, (item) => graph.block[item] ?? kMerged),
    cls: Uint8Array.from(kept, (item) => graph.cls[item] ?? 0),
  };
}

export function encodeGraph(graph: Graph): ArrayBuffer {
  const { slices, items } = graph;
  const size = 64 + 6 * slices * 8 + pad8(slices * 4) + pad8((slices + 1) * 4) + items * 8 + pad8(items * 4) + pad8(items);
  const buffer = new ArrayBuffer(size);
  const view = new DataView(buffer);
  view.setUint32(0, kGraphMagic, true);
  view.setUint32(4, (graph.columns ? 1 : 0) | (graph.reduced ? 2 : 0), true);
  [graph.t0, graph.t1, graph.m0, graph.m1].forEach((value, i) => view.setFloat64(8 + i * 8, value, true));
  view.setUint32(40, slices, true);
  view.setUint32(44, items, true);
  view.setFloat32(48, graph.mergedWidth, true);
  view.setFloat32(52, graph.mergedHeight, true);
  let offset = 64;
  for (const values of [graph.begin, graph.at, graph.total, graph.low, graph.high, graph.base]) {
    new Float64Array(buffer, offset, slices).set(values);
    offset += slices * 8;
  }
  new Uint32Array(buffer, offset, slices).set(graph.state);
  offset += pad8(slices * 4);
  new Uint32Array(buffer, offset, slices + 1).set(graph.first);
  offset += pad8((slices + 1) * 4);
  new Float64Array(buffer, offset, items).set(graph.bytes);
  offset += items * 8;
  new Uint32Array(buffer, offset, items).set(graph.block);
  offset += pad8(items * 4);
  new Uint8Array(buffer, offset, items).set(graph.cls);
  return buffer;
}

export interface Hit {
  slice: number;
  item: number;
  block: number | null;
  cls: number;
  from: number;
  to: number;
  at: number;
  /** The instant stands for a whole pixel column: there were others in it. */
  sampled: boolean;
  state: number;
  total: number;
}

/** What lies at instant `t`, `height` bytes up; null above the stack and outside of the answer. */
export function hitGraph(graph: Graph, t: number, height: number): Hit | null {
  const slice = sliceAt(graph, t);
  if (slice < 0) return null;
  let from = graph.base[slice] ?? 0;
  const end = graph.first[slice + 1] ?? 0;
  for (let item = graph.first[slice] ?? 0; item < end; item += 1) {
    const to = from + (graph.bytes[item] ?? 0);
    if (height >= from && height < to) {
      const block = graph.block[item] ?? kMerged;
      return {
        slice,
        item,
        block: block === kMerged ? null : block,
        cls: graph.cls[item] ?? 0,
        from,
        to,
        at: graph.at[slice] ?? t,
        sampled: graph.columns,
        state: graph.state[slice] ?? 0,
        total: graph.total[slice] ?? 0,
      };
    }
    from = to;
  }
  return null;
}

/** The slice that holds instant `t`: the last that begins at or before it; −1 outside. */
export function sliceAt(graph: Graph, t: number): number {
  if (graph.slices === 0 || t < (graph.begin[0] ?? 0) || t > graph.t1) return -1;
  let low = 0;
  let high = graph.slices - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((graph.begin[middle] ?? 0) <= t) low = middle;
    else high = middle - 1;
  }
  return low;
}
