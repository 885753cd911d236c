// A stand-in for the viewer's server while the page is developed: a made-up training run, answered by
// brute force after docs/view-api.md. Only `npm run dev` uses it.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Plugin } from 'vite';

interface Block { id: number; begin: number; end: number; size: number; site: number; address: bigint }
const kSites = [
  { place: '', function: '', text: null, line: 0 },
  { place: 'memory_leak_demo.py:33', function: 'create_memory_leak', text: 'leak_tensor = torch.full((128, 128), float(loss))', line: 33 },
  { place: 'memory_leak_demo.py:63', function: 'train', text: 'nn.Linear(WIDTH, 128), nn.GELU(), nn.Linear(128, 128)', line: 63 },
  { place: 'memory_leak_demo.py:68', function: 'train', text: 'prediction = model(inputs).mean(dim=1)', line: 68 },
  { place: 'memory_leak_demo.py:71', function: 'train', text: 'loss.backward()', line: 71 },
  { place: 'memory_leak_demo.py:72', function: 'train', text: 'optimizer.step()', line: 72 },
  { place: 'memory_leak_demo.py:42', function: 'position_encoding', text: 'table = torch.zeros(length, WIDTH)', line: 42 },
];
const kStep = 4e6;
const kSteps = 300;
const kEnd = kStep * (kSteps + 1);
const blocks: Block[] = [];
let seed = 5;
const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
function add(begin: number, end: number, size: number, site: number): void {
  blocks.push({ id: blocks.length, begin: Math.floor(begin), end: Math.floor(end), size, site, address: 0x7f0000000000n + BigInt(blocks.length * 131072) });
}
for (let i = 0; i < 6; i += 1) add(1e5 + i * 1e4, Infinity, 65536, 2);
for (let k = 0; k < kSteps; k += 1) {
  const t = (k + 0.2) * kStep;
  const length = [16, 24, 32, 40, 48, 64, 80, 96][(k * 5) % 8] ?? 16;
  for (let j = 0; j < 10; j += 1) add(t + j * 1e5, t + kStep * 0.7 - j * 1e5, length * 8 * 128 * 4, 3);
  for (let j = 0; j < 6; j += 1) add(t + 1.2e6 + j * 1e5, t + kStep + random() * 1e5, 33024, 4);
  if (k === 0) for (let j = 0; j < 12; j += 1) add(t + 2.6e6 + j * 1e4, Infinity, 33024, 5);
  if (k < 8) add(t + 5e4, Infinity, length * 256, 6);
  add(t + 2.9e6, Infinity, 65536, 1);
}
blocks.sort((a, b) => a.begin - b.begin).forEach((block, i) => (block.id = i));
const ends = Array.from({ length: kSteps }, (_u, k) => (k + 1) * kStep);
const live = (t: number): Block[] => blocks.filter((b) => b.begin <= t && b.end > t);
const total = (t: number): number => live(t).reduce((s, b) => s + b.size, 0);
const events = blocks.flatMap((b) => [{ t: b.begin, d: b.size }, ...(b.end < kEnd ? [{ t: b.end, d: -b.size }] : [])]).sort((a, b) => a.t - b.t || a.d - b.d);
let run = 0;
let peak = { bytes: 0, time: 0 };
const curve = events.map((e) => {
  run += e.d;
  if (run > peak.bytes) peak = { bytes: run, time: e.t };
  return { t: e.t, v: run };
});
const stepOf = (t: number): number => Math.floor(t / kStep) + 1;
const frame = (site: number): object => ({ file: '/work/app/memory_leak_demo.py', line: kSites[site]?.line, end_line: kSites[site]?.line, function: kSites[site]?.function, module: '__main__', kind: 'python', user: true, inferred: false, text: kSites[site]?.text });
const library = (name: string): object => ({ file: '/usr/lib/python3/torch/nn/functional.py', line: 1848, end_line: 1848, function: name, module: 'torch', kind: 'python', user: false, inferred: false, text: 'return torch._C._nn.linear(input, weight, bias)' });
const leaked = blocks.filter((b) => b.site === 1);
const diagnosis = {
  inputs: [], devices: ['cpu'], steps: { source: 'api', count: kSteps, first: 1, last: kSteps, warmup_until: 10 },
  verdicts: [{ id: '3f9a', cause: 'leak', layer: 'tensor', device: 'cpu', processes: [0], confidence: 0.985, bytes_total: leaked.length * 65536, bytes_per_step: 65536, bytes_per_second: null, blocks: leaked.length, first_step: 1, last_step: kSteps, site: frame(1), kept_at: { ...frame(1), line: 34, text: 'leak_store.append(leak_tensor)' }, sites: [], stack: [frame(1)], holders: [{ root: 'module', path: [], blocks: 300, bytes: 1, text: '__main__.leak_store[...]' }], owner: null, evidence: {}, advice: 'At memory_leak_demo.py:34 (leak_store.append(leak_tensor)) store a detached number (x.item()) or a copy on the CPU, bound leak_store, or clear leak_store each step.' }],
  suspects: [], suppressed: [],
};
const hue = (s: string): number => Array.from(s).reduce((h, c) => (h * 31 + c.charCodeAt(0)) % 360, 7);
const rank = new Map<string, number[]>();
function order(name: string): number[] {
  let known = rank.get(name);
  if (!known) {
    const ids = blocks.map((b) => b.id);
    const life = (b: Block): number => (b.end > kEnd ? Infinity : b.end - b.begin);
    const by = (i: number): Block => blocks[i] as Block;
    if (name === 'lifetime') ids.sort((a, b) => (life(by(b)) === life(by(a)) ? a - b : life(by(b)) - life(by(a))));
    if (name === 'site' || name === 'owner') ids.sort((a, b) => by(a).site - by(b).site || a - b);
    known = ids;
    rank.set(name, known);
  }
  return known;
}
const stack = (t: number, name: string, on: Set<number> | null): Block[] => order(name).map((i) => blocks[i] as Block).filter((b) => b.begin <= t && b.end > t && (!on || on.has(b.site)));
function hover(b: Block): object {
  return { block: b.id, address: `0x${b.address.toString(16)}`, size: b.size, owner: null, site: { id: b.site, ...kSites[b.site] }, begin: b.begin, end: b.end > kEnd ? null : b.end, lifetime: b.end > kEnd ? null : b.end - b.begin, step: stepOf(b.begin), end_step: b.end > kEnd ? null : stepOf(b.end), thread: { id: 0, tid: 4711, name: 'python' }, preexisting: false, fate_unknown: false, verdict: b.site === 1 ? 0 : null };
}
const kColumns = { blocks: ['block:id', 'address:address', 'size:bytes', 'begin:time', 'end:time', 'lifetime:duration', 'step:int', 'end_step:int', 'owner:text', 'site:text', 'function:text', 'thread:text', 'state:text', 'site_id:int', 'stack_id:int'], events: ['event:id', 'kind:text', 'time:time', 'block:id', 'address:address', 'size:bytes', 'step:int', 'allocated:bytes', 'owner:text', 'site:text', 'function:text', 'thread:text', 'site_id:int', 'stack_id:int'] };

function graph(q: URLSearchParams): Buffer {
  const t0 = Number(q.get('t0'));
  const t1 = Number(q.get('t1'));
  const m0 = Number(q.get('m0') ?? 0);
  const m1 = Number(q.get('m1') ?? peak.bytes * 1.05);
  const width = Number(q.get('width'));
  const on = q.get('classes') ? new Set((q.get('classes') ?? '').split(',').map(Number)) : null;
  const inside = curve.filter((e) => e.t > t0 && e.t < t1);
  const columns = inside.length > 2 * width || inside.length > 1200;
  const n = columns ? Math.min(width, 600) : inside.length + 1;
  const begin: number[] = [];
  const at: number[] = [];
  for (let i = 0; i < n; i += 1) {
    const from = columns ? t0 + (i / n) * (t1 - t0) : i === 0 ? t0 : (inside[i - 1]?.t ?? t0);
    begin.push(from);
    let best = from;
    if (columns) {
      const here = inside.filter((e) => e.t >= from && e.t < from + (t1 - t0) / n);
      const top = here.reduce((m, e) => (q.get('sample') === 'floor' ? (e.v < m.v ? e : m) : e.v > m.v ? e : m), here[0] ?? { t: from, v: 0 });
      best = top.t;
    }
    at.push(best);
  }
  const items: { bytes: number; block: number; cls: number }[] = [];
  const first = [0];
  const totals: number[] = [];
  for (const t of at) {
    let sum = 0;
    for (const b of stack(t, q.get('order') ?? 'lifetime', on)) {
      items.push({ bytes: b.size, block: b.id, cls: b.site });
      sum += b.size;
    }
    totals.push(sum);
    first.push(items.length);
  }
  const pad = (x: number): number => Math.ceil(x / 8) * 8;
  const buffer = Buffer.alloc(64 + 48 * n + pad(n * 4) + pad((n + 1) * 4) + items.length * 8 + pad(items.length * 4) + pad(items.length));
  buffer.write('MSG1', 0);
  buffer.writeUInt32LE(columns ? 1 : 0, 4);
  [t0, t1, m0, m1].forEach((v, i) => buffer.writeDoubleLE(v, 8 + 8 * i));
  buffer.writeUInt32LE(n, 40);
  buffer.writeUInt32LE(items.length, 44);
  let o = 64;
  for (const list of [begin, at, totals, totals, totals, totals.map(() => 0)]) for (const v of list) { buffer.writeDoubleLE(v, o); o += 8; }
  o += pad(n * 4);
  first.forEach((v, i) => buffer.writeUInt32LE(v, o + 4 * i));
  o += pad((n + 1) * 4);
  for (const item of items) { buffer.writeDoubleLE(item.bytes, o); o += 8; }
  items.forEach((item, i) => buffer.writeUInt32LE(item.block, o + 4 * i));
  o += pad(items.length * 4);
  items.forEach((item, i) => (buffer[o + i] = item.cls));
  return buffer;
}
function lines(q: URLSearchParams): Buffer {
  const [t0, t1, width] = ['t0', 't1', 'width'].map((k) => Number(q.get(k))) as [number, number, number];
  const series = (q.get('series') ?? '').split(',');
  const buffer = Buffer.alloc(16 + series.length * width * 24);
  buffer.write('MSL1', 0);
  buffer.writeUInt32LE(series.length, 4);
  buffer.writeUInt32LE(width, 8);
  series.forEach((name, s) => {
    let k = 0;
    let v = 0;
    for (let i = 0; i < width; i += 1) {
      const end = t0 + ((i + 1) / width) * (t1 - t0);
      let low = v;
      let high = v;
      while (k < curve.length && (curve[k]?.t ?? 0) < end) {
        v = curve[k]?.v ?? 0;
        if ((curve[k]?.t ?? 0) >= t0 + (i / width) * (t1 - t0)) { low = Math.min(low, v); high = Math.max(high, v); } else { low = v; high = v; }
        k += 1;
      }
      const f = name.startsWith('counter') ? 40 : 1;
      [low * f, high * f, v * f].forEach((x, j) => buffer.writeDoubleLE(x, 16 + (s * 3 + j) * width * 8 + i * 8));
    }
  });
  return buffer;
}
function rows(name: 'blocks' | 'events', q: URLSearchParams): object {
  const where = JSON.parse(q.get('where') ?? '[]') as { op: string; column?: string; value: unknown }[];
  const columns = kColumns[name].map((c) => ({ name: c.split(':')[0] ?? '', type: c.split(':')[1] ?? '' }));
  let list = blocks;
  for (const c of where) {
    if (c.op === 'verdict') list = list.filter((b) => b.site === 1);
    if (c.column === 'site_id') list = list.filter((b) => b.site === Number(c.value));
    if (c.column === 'size' && c.op === '>') list = list.filter((b) => b.size > Number(c.value));
    if (c.column === 'block') list = list.filter((b) => b.id === Number(c.value));
  }
  const sort = (q.get('sort') ?? '').split(',')[0] ?? '';
  const down = sort.endsWith('desc') ? -1 : 1;
  const value = (b: Block): number => (sort.startsWith('size') ? b.size : sort.startsWith('block') ? b.id : b.begin);
  if (sort) list = [...list].sort((a, b) => down * (value(a) - value(b)));
  const offset = Number(q.get('offset') ?? 0);
  const row = (b: Block): unknown[] => {
    const a = `0x${b.address.toString(16)}`;
    const s = kSites[b.site];
    const end = b.end > kEnd ? null : b.end;
    return name === 'blocks'
      ? [b.id, a, b.size, b.begin, end, end === null ? null : b.end - b.begin, stepOf(b.begin), end === null ? null : stepOf(b.end), null, s?.place, s?.function, 'python (4711)', end === null ? 'live' : 'freed', b.site, 0]
      : [b.id, 'alloc', b.begin, b.id, a, b.size, stepOf(b.begin), total(b.begin), null, s?.place, s?.function, 'python (4711)', b.site, 0];
  };
  return { total: list.length, all: blocks.length, offset, columns, rows: list.slice(offset, offset + Number(q.get('limit') ?? 100)).map(row), sum: { size: list.reduce((s, b) => s + b.size, 0) } };
}
const instant = (text: string | null): number => (text === null || text === 'peak' ? peak.time : text === 'end' ? kEnd : text.startsWith('step:') ? (ends[Number(text.slice(5)) - 1] ?? 0) : Number(text));
const perSite = (list: Block[], site: number): number => list.filter((b) => b.site === site).reduce((s, b) => s + b.size, 0);

function answer(name: string, q: URLSearchParams): unknown {
  const block = blocks[Number(q.get('block'))];
  switch (name) {
    case 'status': return { generation: 1, state: 'ready', progress: 1, growing: false, error: null, diagnosis: 'ready' };
    case 'session': return { tool: 'msmemscope 0.1.0', generation: 1, growing: false, origin_ns: '0', begin: 0, end: kEnd, inputs: [{ id: 0, path: '/work/app/memscopeDumpResults/run-1/host-x-4711', name: 'host-x-4711', kind: 'trace', process: { host: 'host', rank: null, pid: 4711, argv0: 'memory_leak_demo.py', command: '' }, ended: 'stop', complete: true, dropped: 0, begin: 0, end: kEnd, events: events.length, blocks: blocks.length, steps: kSteps, counters: [{ name: 'rss', device: null, layer: null }], ooms: 0, sources: true, owners: false, holders: true, damage: [] }], pools: [{ id: 0, input: 0, device: 'cpu', layer: 'tensor', name: 'cpu tensors', begin: 0, end: kEnd, events: events.length, blocks: blocks.length, live_blocks: live(kEnd).length, live_bytes: total(kEnd), peak, reported: false, reserved: false, owners: false }], diagnosis, opening: { pool: 0, order: 'lifetime', colour: 'site', t0: 0, t1: kEnd, classes: null } };
    case 'steps': return { source: 'api', begin: 0, ends, first_number: 1 };
    case 'lanes': {
      const [t0, t1, width] = ['t0', 't1', 'width'].map((k) => Number(q.get(k))) as [number, number, number];
      const each = Math.max(1, Math.ceil((t1 - t0) / width / kStep * 2));
      const steps = [];
      for (let k = 0; k < kSteps; k += each) if ((k + each) * kStep > t0 && k * kStep < t1) steps.push({ k: k + 1, last_k: Math.min(k + each, kSteps), begin: k * kStep, end: (k + each) * kStep, count: each });
      return { steps, phases: each > 1 ? [] : steps.flatMap((s) => [{ phase: 'forward', module: null, begin: s.begin + 0.2 * kStep, end: s.begin + 0.45 * kStep, count: 1 }, { phase: 'backward', module: null, begin: s.begin + 0.45 * kStep, end: s.begin + 0.8 * kStep, count: 1 }, { phase: 'optimizer', module: null, begin: s.begin + 0.8 * kStep, end: s.end, count: 1 }]), marks: [], ooms: [], gaps: [], windows: [] };
    }
    case 'legend': return { colour: q.get('colour'), classes: kSites.map((s, i) => ({ id: i, name: i === 0 ? 'other' : s.place, detail: s.text, key: { site: i }, bytes: perSite(live(kEnd), i), peak: perSite(live(peak.time), i), blocks: blocks.filter((b) => b.site === i).length, hue: hue(s.place) })) };
    case 'hover': return block && hover(block);
    case 'locate': return { block: null, from: 0, to: 0, total: 0, summary: null };
    case 'place': {
      if (!block) return null;
      const t = Number(q.get('t') ?? block.begin);
      let from = 0;
      for (const b of stack(t, q.get('order') ?? 'lifetime', null)) { if (b.id === block.id) break; from += b.size; }
      return { begin: block.begin, end: block.end > kEnd ? null : block.end, t, from, to: from + block.size };
    }
    case 'block': return block && { ...hover(block), stack: [library('linear'), library('forward'), frame(block.site), { ...frame(2), line: 75, function: 'main', text: 'train(arguments.steps, after_step=msmemscope.step)' }], user_frame: 2, stack_id: 1, free_thread: null, allocated_before: total(block.begin - 1), event: block.id, free_event: null, events: [{ kind: 'alloc', time: block.begin, thread: 'python (4711)', text: null }, ...(block.end < kEnd ? [{ kind: 'free', time: block.end, thread: 'python (4711)', text: null }] : [])], neighbours: { t: block.begin, below: blocks.slice(Math.max(0, block.id - 2), block.id).map((b) => ({ block: b.id, address: `0x${b.address.toString(16)}`, size: b.size, gap: 65536 })), above: [] }, holders: block.site === 1 ? [{ root: 'module', text: '__main__.leak_store[11]', file: null, line: null, function: '', path: [] }] : [], same_site: { live_blocks: 1, live_bytes: perSite(live(kEnd), block.site), blocks: blocks.filter((b) => b.site === block.site).length } };
    case 'source': { const line = Number(q.get('line')); const around = Number(q.get('around') ?? 30); const first = Math.max(1, line - around); return { file: q.get('file'), first_line: first, lines: Array.from({ length: 2 * around + 1 }, (_u, i) => (first + i === line ? `    ${kSites.find((s) => s.line === line)?.text ?? 'leak_store.append(leak_tensor)'}` : `    # line ${first + i}`)), line, end_line: line, newer_than_process: false, truncated: false }; }
    case 'sites': {
      const list = kSites.map((s, i) => ({ site: i, place: s.place, function: s.function, text: s.text, file: '/work/app/memory_leak_demo.py', line: s.line, user: true, live_bytes: perSite(live(kEnd), i), live_blocks: live(kEnd).filter((b) => b.site === i).length, peak_bytes: perSite(live(peak.time), i), peak_time: peak.time, allocs: blocks.filter((b) => b.site === i).length, alloc_bytes: perSite(blocks, i), bytes_per_step: i === 1 ? 65536 : 0, lifetime_ns: i === 3 ? 2.1e6 : null, owner: null, verdict: i === 1 ? 0 : null, spark: Array.from({ length: 64 }, (_u, k) => perSite(live((k / 63) * kEnd), i)) })).slice(1).filter((r) => !q.get('find') || `${r.place}${r.function}${r.text}`.includes(q.get('find') ?? '')).sort((a, b) => b.live_bytes - a.live_bytes);
      return { total: list.length, step_source: 'api', points: 64, rows: list };
    }
    case 'composition': {
      const a = live(instant(q.get('t')));
      const b = q.get('base') ? live(instant(q.get('base'))) : null;
      const value = (i: number): number => perSite(a, i) - (b ? perSite(b, i) : 0);
      const sum = kSites.reduce((s, _u, i) => s + value(i), 0);
      const base = (i: number): number | null => (b ? perSite(b, i) : null);
      const node = (id: number, parent: number, name: string, v: number, old: number | null, self: number, depth: number): object => ({ id, parent, name, detail: null, value: v, base: old, self, blocks: 3, kind: depth === 0 ? 'root' : 'frame', user: depth === 2, file: null, line: null, site: depth === 2 ? id - 2 : null, depth });
      const oldSum = b ? b.reduce((s, x) => s + x.size, 0) : null;
      return { by: q.get('by'), weight: q.get('weight'), t: 0, base: b ? 1 : null, total: sum, base_total: oldSum, nodes: [node(0, -1, '', sum, oldSum, 0, 0), node(1, 0, 'main memory_leak_demo.py:80', sum, oldSum, 0, 1), ...kSites.map((s, i) => node(i + 2, 1, `${s.function} ${s.place}`, value(i), base(i), value(i), 2)).filter((_n, i) => i > 0)] };
    }
    case 'blocks': case 'events': return rows(name, q);
    case 'index': return { offset: 0 };
    case 'compare': {
      const side = (text: string): Block[] => live(instant(text.split('@')[1] ?? null));
      const [a, b] = [side(q.get('a') ?? ''), side(q.get('b') ?? '')];
      const sum = (list: Block[]): object => ({ pool: 0, t: 0, bytes: list.reduce((s, x) => s + x.size, 0), blocks: list.length });
      return { a: sum(a), b: sum(b), rows: kSites.map((s, i) => ({ name: s.place || 'native', detail: s.text, a_bytes: perSite(a, i), b_bytes: perSite(b, i), a_blocks: a.filter((x) => x.site === i).length, b_blocks: b.filter((x) => x.site === i).length, delta: perSite(b, i) - perSite(a, i), site_a: i, site_b: i })).sort((x, y) => Math.abs(y.delta) - Math.abs(x.delta)) };
    }
    case 'pool_map': return { available: false, why: '', collect: '' };
    case 'search': return { results: [] };
    default: return undefined;
  }
}

function serve(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (!url.pathname.startsWith('/api/')) {
    next();
    return;
  }
  const name = url.pathname.slice(5);
  response.setHeader('X-MemScope-Generation', '1');
  if (name === 'graph' || name === 'lines') { response.end(name === 'graph' ? graph(url.searchParams) : lines(url.searchParams)); return; }
  const body = answer(name, url.searchParams);
  response.statusCode = body === undefined ? 404 : 200;
  response.end(JSON.stringify(body ?? { error: 'no such thing' }));
}

export function mockServer(): Plugin {
  return { name: 'mock-server', configureServer: (server) => void server.middlewares.use(serve) };
}
