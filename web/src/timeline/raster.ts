// The block graph as pixels. Column by column: which slice a pixel column shows, then its items from
// the bottom up. Edges are rounded positions, never rounded heights, so that nothing drifts.

import { type Graph, kMerged } from '../api/wire';

export interface RasterStyle {
  /** A colour a class, 0xAABBGGRR (the byte order of ImageData on every machine a browser runs on). */
  colours: Uint32Array;
  /** Shown in place of a peak: the lowest state of what shares a pixel. */
  floor: boolean;
}

/** Which slice stands for each pixel column; −1 where there is none. */
export function columnSlices(graph: Graph, width: number, floor: boolean): Int32Array {
  const slices = new Int32Array(width).fill(-1);
  const scale = width / (graph.t1 - graph.t0);
  for (let s = 0; s < graph.slices; s += 1) {
    const begin = graph.begin[s] ?? 0;
    const end = s + 1 < graph.slices ? (graph.begin[s + 1] ?? 0) : graph.t1;
    const left = Math.max(0, Math.floor((begin - graph.t0) * scale + 1e-6));
    const right = Math.min(width, Math.max(left + 1, Math.ceil((end - graph.t0) * scale - 1e-6)));
    const total = graph.total[s] ?? 0;
    for (let x = left; x < right; x += 1) {
      const rival = slices[x] ?? -1;
      // Several instants in one pixel: the one that the user asked to see.
      const better = rival < 0 || (floor ? total < (graph.total[rival] ?? 0) : total > (graph.total[rival] ?? 0));
      if (better) slices[x] = s;
    }
  }
  return slices;
}

/** Rows are top → bottom; what nothing covers stays transparent. */
export function rasterGraph(graph: Graph, width: number, height: number, style: RasterStyle): Uint32Array<ArrayBuffer> {
  const pixels = new Uint32Array(width * height);
  const slices = columnSlices(graph, width, style.floor);
  const scale = height / (graph.m1 - graph.m0);
  let x = 0;
  while (x < width) {
    const slice = slices[x] ?? -1;
    let end = x + 1;
    while (end < width && slices[end] === slice) end += 1;
    if (slice >= 0) fillSlice(graph, slice, pixels, width, height, x, end, scale, style.colours);
    x = end;
  }
  return pixels;
}

function fillSlice(
  graph: Graph, slice: number, pixels: Uint32Array, width: number, height: number,
  left: number, right: number, scale: number, colours: Uint32Array,
): void {
  let position = graph.base[slice] ?? 0;
  const end = graph.first[slice + 1] ?? 0;
  for (let item = graph.first[slice] ?? 0; item < end; item += 1) {
    const next = position + (graph.bytes[item] ?? 0);
    const bottom = Math.min(height, Math.max(0, Math.round(height - (position - graph.m0) * scale)));
    const top = Math.min(height, Math.max(0, Math.round(height - (next - graph.m0) * scale)));
    position = next;
    if (top >= bottom) continue;
    const colour = colours[graph.cls[item] ?? 0] ?? 0;
    const block = graph.block[item] ?? kMerged;
    const body = block === kMerged ? colour : shade(colour, lightnessOf(block));
    const edge = block !== kMerged && bottom - top >= 4 ? shade(body, 214) : body;
    for (let y = top; y < bottom; y += 1) {
      pixels.fill(y === top ? edge : body, y * width + left, y * width + right);
    }
  }
}

/** 238 … 256 of 256, by block: neighbours of one class are told apart without losing its colour. */
function lightnessOf(block: number): number {
  const hash = Math.imul(block ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  return 238 + ((hash >>> 24) * 18) / 255;
}

function shade(colour: number, share: number): number {
  const red = ((colour & 0xff) * share) >> 8;
  const green = (((colour >>> 8) & 0xff) * share) >> 8;
  const blue = (((colour >>> 16) & 0xff) * share) >> 8;
  return ((colour & 0xff000000) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Where a block is drawn: a run of slices each with the item's lower and upper edge. */
export interface Band {
  left: number;
  right: number;
  from: number;
  to: number;
}

export function bandsOf(graph: Graph, block: number): Band[] {
  const bands: Band[] = [];
  for (let s = 0; s < graph.slices; s += 1) {
    const end = graph.first[s + 1] ?? 0;
    for (let item = graph.first[s] ?? 0; item < end; item += 1) {
      if (graph.block[item] !== block) continue;
      let from = graph.base[s] ?? 0;
      for (let below = graph.first[s] ?? 0; below < item; below += 1) from += graph.bytes[below] ?? 0;
      const left = graph.begin[s] ?? 0;
      const right = s + 1 < graph.slices ? (graph.begin[s + 1] ?? 0) : graph.t1;
      const to = from + (graph.bytes[item] ?? 0);
      const last = bands[bands.length - 1];
      if (last && last.right === left && last.from === from && last.to === to) last.right = right;
      else bands.push({ left, right, from, to });
      break;
    }
  }
  return bands;
}
