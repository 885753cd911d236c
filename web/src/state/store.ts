// What the page knows and shows, as signals; the actions that more than one view needs.

import { batch, computed, effect, signal } from '@preact/signals';

import type { Verdict } from '../api/diagnosis';
import type { Input, Pool, Session, SiteRow, Sites, Status, Steps } from '../api/types';
import { ask, forget, isAbort } from '../api/client';
import type { ReportFacts } from '../api/report';
import { frameRange, type Range, sameRange } from '../timeline/viewport';
import { pictureDone } from './first_picture';
import { nested } from './nesting';
import { decodeView, encodeView, kColours, kMostPanes, kOrders, type ViewState } from './view_state';
import { type Window, ZoomHistory } from './zoom_history';

export const status = signal<Status | null>(null);
export const session = signal<Session | null>(null);
export const failure = signal<string | null>(null);
export const view = signal<ViewState>(decodeView(globalThis.location.hash));
export const steps = signal<Steps | null>(null);
/** Where the pointer is in time, in whichever view; every time axis shows it. */
export const pointerTime = signal<number | null>(null);
export const history = signal(new ZoomHistory());
/** Where this page is a report: what it lacks. */
export const reportFacts = signal<ReportFacts | null>(null);
export const toast = signal<string | null>(null);

export const pool = computed<Pool | null>(() => {
  const pools = session.value?.pools ?? [];
  const wanted = view.value.pool ?? session.value?.opening?.pool ?? null;
  return pools.find((candidate) => candidate.id === wanted) ?? pools[0] ?? null;
});

/** Changes whenever answers may: the index was made anew, or a diagnosis has come. */
export const edition = computed<string>(() => {
  const open = session.value;
  return open ? `${open.generation}${open.diagnosis ? ' judged' : ''}` : '';
});

export const input = computed<Input | null>(
  () => session.value?.inputs.find((candidate) => candidate.id === pool.value?.input) ?? null,
);

/** Something was seen there. */
export function isUsed(candidate: Pool): boolean {
  return candidate.blocks > 0 || candidate.reported || candidate.reserved;
}

/** What is shown one above the other, each behind what it lies within; the chosen pool is always among them. */
export const shownPools = computed<Pool[]>(() => {
  const ids = new Set(view.value.panes);
  const here = pool.value;
  return nested(session.value?.pools ?? [])
    .map((row) => row.pool)
    .filter((candidate) => candidate === here || (ids.has(candidate.id) && isUsed(candidate)));
});

/** All of the time there is: of the inputs that are shown, a little longer than nothing. */
export const wholeTime = computed<Range>(() => {
  const ids = new Set(shownPools.value.map((candidate) => candidate.input));
  const from = session.value?.inputs.filter((candidate) => ids.has(candidate.id)) ?? [];
  const begin = from.length > 0 ? Math.min(...from.map((candidate) => candidate.begin)) : 0;
  const end = from.length > 0 ? Math.max(...from.map((candidate) => candidate.end)) : 1;
  return [begin, Math.max(end, begin + 1000)];
});

/** From zero to a little above the peak, so that the peak is not the frame's edge. */
export const wholeBytesOf = (candidate: Pool | null): Range => [0, Math.max((candidate?.peak.bytes ?? 0) * 1.06, 1024)];
export const wholeBytes = computed<Range>(() => wholeBytesOf(pool.value));

export const timeWindow = computed<Range>(() => view.value.time ?? wholeTime.value);
export const bytesWindow = computed<Range>(() => view.value.bytes ?? wholeBytes.value);

/** The shortest window: events lie some 100 ns apart. */
export const kShortestTime = 200;
export const kShortestBytes = 256;

export function patch(change: Partial<ViewState>): void {
  view.value = { ...view.value, ...change };
}

/** What belongs to one pool and means nothing in another. */
const kOfPool = { bytes: null, block: null, pins: [], site: null, hidden: [], zoom: '' };

/** Everything below and beside the timeline is about this pool; what is shown stays. */
export function focusPool(id: number): void {
  if (id === pool.value?.id) return;
  const { panes } = view.value;
  patch({ ...kOfPool, pool: id, panes: panes.length > 0 && !panes.includes(id) ? [...panes, id] : panes });
}

export function showOnly(id: number): void {
  patch({ ...(id === pool.value?.id ? {} : kOfPool), pool: id, panes: [] });
}

/** One more pane, or one less; the last one stays. */
export function togglePane(id: number): void {
  const shown = shownPools.value.map((candidate) => candidate.id);
  const panes = shown.includes(id) ? shown.filter((candidate) => candidate !== id) : [...shown, id].slice(-kMostPanes).sort((a, b) => a - b);
  const [first] = panes;
  if (first === undefined) return;
  const here = pool.value?.id ?? first;
  const focus = panes.includes(here) ? {} : { ...kOfPool, pool: first };
  patch({ ...focus, panes: panes.length > 1 ? panes : [] });
}

export function moveTo(time: Range | null, bytes: Range | null): void {
  const whole = wholeTime.value;
  const top = wholeBytes.value;
  patch({
    time: time && sameRange(time, whole) ? null : time,
    bytes: bytes && bytes[0] <= top[0] && bytes[1] >= top[1] ? null : bytes,
  });
}

/** A jump, which the history remembers; moves by hand are remembered by `rememberWindow`. */
export function jumpTo(time: Range | null, bytes: Range | null): void {
  rememberWindow();
  moveTo(time, bytes);
}

export function rememberWindow(window: Window = { time: view.value.time, bytes: view.value.bytes }): void {
  history.value.leave(window);
}

export function travel(direction: 'back' | 'forward'): void {
  const here = { time: view.value.time, bytes: view.value.bytes };
  const window = direction === 'back' ? history.value.back(here) : history.value.forward(here);
  if (window) patch(window);
}

export function selectBlock(block: number | null): void {
  patch({ block });
}

/** The block in the middle of the graph, with its surroundings. */
export async function showBlock(block: number): Promise<void> {
  const here = pool.value;
  if (!here) return;
  selectBlock(block);
  const order = view.value.order;
  const place = await ask<{ begin: number; end: number | null; t: number; from: number; to: number }>('place', {
    pool: here.id, block, order,
  });
  const end = place.end ?? wholeTime.value[1];
  const time = frameRange([place.begin, end], 0.5, wholeTime.value, kShortestTime);
  const height = Math.max(place.to - place.from, kShortestBytes);
  const bytes = frameRange([place.from, place.to], 4, wholeBytes.value, height);
  jumpTo(time, bytes);
}

export function stepBounds(k: number): Range | null {
  const known = steps.value;
  if (!known) return null;
  const index = k - known.first_number;
  const end = known.ends[index];
  if (end === undefined) return null;
  return [index > 0 ? (known.ends[index - 1] ?? 0) : known.begin, end];
}

/** Every view goes to what a verdict accuses: its pool by lifetime, its site, its blocks. */
export async function showVerdict(verdict: Verdict): Promise<void> {
  const open = session.value;
  if (!open) return;
  const index = open.diagnosis?.verdicts.indexOf(verdict) ?? -1;
  const fits = open.pools.filter(
    (candidate) =>
      (verdict.device === null || candidate.device === verdict.device) &&
      (verdict.layer === null || candidate.layer === verdict.layer) &&
      (verdict.processes.length === 0 || verdict.processes.includes(candidate.input)),
  );
  const target = fits.find((candidate) => candidate.id === pool.value?.id) ?? fits[0] ?? pool.value;
  if (!target) return;
  rememberWindow();
  const grows = verdict.cause !== 'none' && verdict.cause !== 'peak' && verdict.cause !== 'misconfigured';
  patch({
    pool: target.id,
    panes: view.value.panes.length > 0 && !view.value.panes.includes(target.id) ? [...view.value.panes, target.id] : view.value.panes,
    verdict: verdict.id,
    block: null,
    time: null,
    bytes: null,
    hidden: [],
    order: grows ? 'lifetime' : 'alloc',
    colour: 'site',
    tab: grows ? 'blocks' : 'sites',
    blocks: {
      sort: [{ column: 'begin', descending: true }],
      filters: grows && index >= 0 ? { verdict: String(index) } : {},
    },
    site: null,
    at: verdict.cause === 'peak' ? null : -1,
    against: null,
  });
  if (!grows) return;
  try {
    const site = await siteOfVerdict(target.id, verdict, index);
    if (view.value.verdict !== verdict.id) return;
    patch({ site: site?.site ?? null });
    if (index < 0) patch({ blocks: { sort: [{ column: 'begin', descending: true }], filters: site ? { site_id: `=${site.site}` } : {} } });
    await frameWedge(target, index, verdict);
  } catch (error) {
    if (!isAbort(error)) console.warn(error);
  }
}

async function siteOfVerdict(poolId: number, verdict: Verdict, index: number): Promise<SiteRow | null> {
  // What is accused grows: it is among those that grow most.
  const sites = await ask<Sites>('sites', { pool: poolId, sort: 'bytes_per_step:desc', limit: 100 });
  return (
    sites.rows.find((row) => index >= 0 && row.verdict === index) ??
    sites.rows.find((row) => verdict.site !== null && row.file === verdict.site.file && row.line === verdict.site.line) ??
    null
  );
}

// In the order by lifetime the wedge's top is the edge of the block that was born last.
async function frameWedge(target: Pool, index: number, verdict: Verdict): Promise<void> {
  if (index < 0) return;
  const rows = await ask<{ rows: unknown[][]; columns: { name: string }[] }>('blocks', {
    pool: target.id,
    where: JSON.stringify([{ op: 'verdict', value: index }]),
    sort: 'begin:desc',
    limit: 1,
  });
  const column = rows.columns.findIndex((candidate) => candidate.name === 'block');
  const block = rows.rows[0]?.[column];
  if (typeof block !== 'number') return;
  const place = await ask<{ to: number }>('place', { pool: target.id, block, order: 'lifetime', t: wholeTime.value[1] });
  if (view.value.verdict !== verdict.id || place.to <= 0) return;
  const top = place.to * 1.35;
  patch({ bytes: top < wholeBytes.value[1] * 0.8 ? [0, top] : null });
}

// --- following the server --------------------------------------------------------------------------

// The view that the server's opening made. While it is untouched a better one may replace it: the
// diagnosis may come later than the picture.
let opened: string | null = null;
const linked = globalThis.location.hash;

function showOpening(open: Session): void {
  const first = opened === null;
  if (first && globalThis.location.hash.length > 1) {
    opened = ''; // a link says what to show
    return;
  }
  if (!open.opening || (!first && encodeView(view.value) !== opened)) return;
  const order = kOrders.find((candidate) => candidate === open.opening?.order);
  const colour = kColours.find((candidate) => candidate === open.opening?.colour);
  patch({ pool: open.opening.pool, ...(order ? { order } : {}), ...(colour ? { colour } : {}) });
  opened = encodeView(view.value);
}

async function refresh(): Promise<void> {
  const before = status.value;
  // The first time both in one: with an index in the cache there is something to show at once.
  const now = await ask<Status>('status', before === null ? { session: 1 } : {});
  const changed =
    now.state === 'ready' &&
    (session.value === null || before?.generation !== now.generation || before.diagnosis !== now.diagnosis);
  status.value = now;
  failure.value = now.state === 'failed' ? (now.error ?? 'failed') : null;
  if (changed) {
    const known = now.session;
    const today = known?.generation === now.generation && (known.diagnosis !== null || now.diagnosis !== 'ready');
    const open = known && today ? known : await ask<Session>('session');
    if (before && before.diagnosis !== now.diagnosis) forget();
    // Named frames make other sites: what was chosen among the old ones means nothing now. A link's are the new ones'.
    if (before?.names === 'running' && now.names === 'ready' && before.generation !== now.generation) {
      const link = decodeView(linked);
      if (view.value.site !== link.site) patch({ site: null });
      if (view.value.zoom !== link.zoom) patch({ zoom: '' });
      if (view.value.hidden.join() !== link.hidden.join()) patch({ hidden: [] });
    }
    batch(() => {
      session.value = open;
      showOpening(open);
    });
    if (open.pools.every((candidate) => candidate.blocks === 0)) pictureDone(false);
  }
}

/** Done when the first answer is there. */
export function follow(): Promise<void> {
  let rest = 0;
  const tick = async (): Promise<void> => {
    try {
      await refresh();
      rest = 0;
    } catch (error) {
      rest += 1;
      // One lost answer is no reason to alarm anybody; two are.
      if (rest >= 2) failure.value = String(error);
    }
    const now = status.value;
    const settled = now?.state === 'ready' && !now.growing && now.diagnosis !== 'running' && now.names !== 'running' && rest === 0;
    if (!settled) setTimeout(() => void tick(), now?.state === 'ready' ? 1000 : 50);
  };
  const begun = tick();
  effect(() => {
    const id = input.value?.id;
    if (id === undefined || edition.value === '') return;
    ask<Steps>('steps', { input: id }).then(
      (known) => (steps.value = known),
      () => (steps.value = null),
    );
  });
  followAddress();
  return begun;
}

// The address follows the view a moment later: a drag is one entry, not hundreds.
function followAddress(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let written = encodeView(view.value);
  effect(() => {
    const fragment = encodeView(view.value);
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (fragment === written) return;
      written = fragment;
      globalThis.history.replaceState(null, '', fragment === '' ? globalThis.location.pathname : `#${fragment}`);
    }, 250);
  });
  window.addEventListener('hashchange', () => {
    const fragment = globalThis.location.hash.slice(1);
    if (fragment === written) return;
    view.value = decodeView(fragment);
    written = encodeView(view.value);
  });
}
