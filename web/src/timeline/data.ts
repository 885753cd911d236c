// What the timeline asks for beside the block graph: lines, lanes, legend; which sites are accused.

import { computed, effect, signal } from '@preact/signals';

import { ask, askBinary, isAbort } from '../api/client';
import type { Lanes, Legend, Pool } from '../api/types';
import { decodeLines } from '../api/wire';
import { edition, input, isUsed, pool, session, shownPools, timeWindow, view } from '../state/store';
import type { Range } from './viewport';

export interface LineData {
  time: Range;
  x: number[];
  series: { key: string; values: (number | null)[]; low: (number | null)[] }[];
}

/** By pool and colour, as `legendKey` names them. */
const legends = signal<ReadonlyMap<string, Legend>>(new Map());
const legendKey = (poolId: number, colour: string): string => `${poolId} ${colour}`;
export const legend = computed<Legend | null>(() => (pool.value ? legendOf(pool.value.id) : null));
export const lanes = signal<Lanes | null>(null);
export const lineData = signal<LineData | null>(null);
/** Sites that a verdict accuses: site id → the verdict's index. */
export const accusedSites = computed<ReadonlyMap<number, number>>(() => accusedOf(pool.value));
/** Pixels of the plotting area; what is asked for depends on it. */
export const plotWidth = signal(0);

export function legendOf(poolId: number): Legend | null {
  return legends.value.get(legendKey(poolId, view.value.colour)) ?? null;
}

export function accusedOf(from: Pool | null): ReadonlyMap<number, number> {
  const sites = new Map<number, number>();
  for (const { site, verdict } of from?.accused ?? []) if (!sites.has(site)) sites.set(site, verdict);
  return sites;
}

/** Curves of pools that have no pane: more would leave the pictures no room. */
const kCurves = 3;

/** Of those that only say what another is made of: seven lanes would leave the picture no room. */
const isPart = (name: string): boolean => /^(rss|cgroup|agent)\.|^swap$/.test(name);
export const partNames = (): string[] => (input.value?.counters ?? []).map((counter) => counter.name).filter(isPart);

/** The series of the panes, then what else is known of the process. */
export function seriesKeys(): string[] {
  const here = pool.value;
  const from = input.value;
  if (!here || !from) return [];
  const shown = shownPools.value;
  const keys = shown.flatMap((one) => (one.reserved ? [`allocated:${one.id}`, `reserved:${one.id}`] : [`allocated:${one.id}`]));
  // The largest of the other pools of the process: their curves lie below, on the same time axis.
  const others = (session.value?.pools ?? []).filter((other) => other.input === here.input && !shown.includes(other) && isUsed(other));
  others.sort((a, b) => b.peak.bytes - a.peak.bytes);
  keys.push(...others.slice(0, Math.max(kCurves + 1 - shown.length, 0)).map((other) => `allocated:${other.id}`));
  const devices = new Set(shown.map((one) => one.device));
  from.counters.forEach((counter, index) => {
    if (isPart(counter.name) && !view.value.parts) return;
    if ((counter.device === null || devices.has(counter.device)) && keys.length < 28) keys.push(`counter:${from.id}:${index}`);
  });
  return keys;
}

/** Runs `work` anew whenever a signal it reads changes; its requests are given up then. */
function asking(work: (abort: AbortSignal) => Promise<void> | undefined): void {
  effect(() => {
    const control = new AbortController();
    work(control.signal)?.catch((error: unknown) => {
      if (!isAbort(error)) console.warn(error);
    });
    return () => control.abort();
  });
}

/** A moment after the window came to rest: the same questions are not asked at every frame of a drag. */
const restingWindow = signal<{ time: Range; width: number } | null>(null);

function followWindow(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const next = { time: timeWindow.value, width: plotWidth.value };
    clearTimeout(timer);
    timer = setTimeout(() => (restingWindow.value = next), restingWindow.peek() ? 40 : 0);
  });
}

export function followTimeline(): void {
  followWindow();
  asking(async (abort) => {
    const shown = shownPools.value.map((one) => one.id);
    const colour = view.value.colour;
    if (edition.value === '') return;
    await Promise.all(
      shown.map(async (id) => {
        const answer = await ask<Legend>('legend', { pool: id, colour }, abort);
        legends.value = new Map(legends.peek()).set(legendKey(id, colour), answer);
      }),
    );
  });
  asking((abort) => {
    const from = input.value?.id;
    const window = restingWindow.value;
    const generation = session.value?.generation;
    if (from === undefined || generation === undefined || !window || window.width < 10) return undefined;
    const [t0, t1] = wholeNumbers(window.time);
    return ask<Lanes>('lanes', { input: from, t0, t1, width: Math.min(Math.floor(window.width), 8192) }, abort).then((answer) => {
      lanes.value = answer;
    });
  });
  asking(async (abort) => {
    const keys = seriesKeys();
    const window = restingWindow.value;
    const generation = session.value?.generation;
    if (keys.length === 0 || generation === undefined || !window || window.width < 10) return;
    const width = Math.min(Math.floor(window.width), 8192);
    const [begin, end] = wholeNumbers(window.time);
    const buffer = await askBinary('lines', { series: keys.join(','), t0: begin, t1: end, width }, abort);
    const answer = decodeLines(buffer);
    const plain = (array: Float64Array): (number | null)[] =>
      Array.from(array, (value) => (Number.isFinite(value) ? value : null));
    lineData.value = {
      time: [begin, end],
      x: Array.from({ length: width }, (_unused, i) => begin + ((i + 0.5) / width) * (end - begin)),
      series: answer.series.map((series, i) => ({
        key: keys[i] ?? '',
        values: plain(series.max),
        low: plain(series.min),
      })),
    };
  });
}

function wholeNumbers(range: Range): Range {
  const begin = Math.floor(range[0]);
  return [begin, Math.max(Math.ceil(range[1]), begin + 1)];
}
