// The answers of docs/view-api.md, as far as the page reads them. Times: ns since the origin.

import type { Diagnosis, Frame } from './diagnosis';

export interface Status {
  generation: number;
  state: 'building' | 'ready' | 'failed';
  progress: number | null;
  growing: boolean;
  error: string | null;
  diagnosis: 'running' | 'ready' | 'failed';
  /** Whether native frames have their names: sites have other numbers then. */
  names: 'running' | 'ready';
  /** Where it was asked for: what \`session\` would say, null while there is none. */
  session?: Session | null;
}

export interface Input {
  id: number;
  path: string;
  name: string;
  kind: string;
  process: { host: string; rank: number | null; pid: number; argv0: string; command: string | null } | null;
  ended: string;
  complete: boolean;
  dropped: number;
  begin: number;
  end: number;
  events: number;
  blocks: number;
  steps: number;
  counters: { name: string; device: string | null; layer: string | null }[];
  phases: number;
  marks: number;
  ooms: number;
  sources: boolean;
  owners: boolean;
  holders: boolean;
  damage: string[];
}

export interface Pool {
  id: number;
  input: number;
  device: string;
  layer: string;
  name: string;
  begin: number;
  end: number;
  events: number;
  blocks: number;
  live_blocks: number;
  live_bytes: number;
  peak: { bytes: number; time: number };
  reported: boolean;
  reserved: boolean;
  owners: boolean;
  /** Sites that a verdict accuses, and the verdict's index. */
  accused: { site: number; verdict: number }[];
}

export interface Session {
  tool: string;
  generation: number;
  growing: boolean;
  origin_ns: string;
  begin: number;
  end: number;
  inputs: Input[];
  pools: Pool[];
  diagnosis: Diagnosis | null;
  opening: { pool: number; order: string; colour: string; t0: number; t1: number; classes: number[] | null } | null;
}

export interface Steps {
  source: string;
  begin: number;
  ends: number[];
  first_number: number;
}

export interface Lanes {
  steps: { k: number; last_k: number; begin: number; end: number; count: number }[];
  phases: { phase: string; module: string | null; begin: number; end: number; count: number }[];
  marks: { text: string; domain: string | null; begin: number; end: number | null; count: number }[];
  ooms: { time: number; device: string; layer: string; size: number; count: number }[];
  gaps: { begin: number; end: number; reason: string }[];
  windows: { begin: number; end: number }[];
}

export interface LegendClass {
  id: number;
  name: string;
  detail: string | null;
  key: Record<string, unknown>;
  bytes: number;
  peak: number;
  blocks: number;
  hue: number;
}

export interface Legend {
  colour: string;
  classes: LegendClass[];
}

export interface Hover {
  block: number;
  address: string;
  size: number;
  owner: string | null;
  site: { id: number; place: string; function: string; text: string | null } | null;
  begin: number;
  end: number | null;
  lifetime: number | null;
  step: number | null;
  end_step: number | null;
  thread: unknown;
  preexisting: boolean;
  fate_unknown: boolean;
  verdict: number | null;
}

export interface Located {
  block: number | null;
  from: number;
  to: number;
  total: number;
  summary: Hover | null;
}

export interface Place {
  begin: number;
  end: number | null;
  t: number;
  from: number;
  to: number;
}

export interface Neighbour {
  block: number;
  address: string;
  size: number;
  gap: number;
}

export interface Block extends Hover {
  stack: Frame[];
  user_frame: number | null;
  stack_id: number;
  free_thread: unknown;
  allocated_before: number | null;
  event: number;
  free_event: number | null;
  events: { kind: string; time: number | null; thread: unknown; text: string | null }[];
  /** Null where the input does not tell of accesses. */
  accesses: { count: number; first: number | null; last: number | null; longest_idle: number } | null;
  neighbours: { t: number; below: Neighbour[]; above: Neighbour[] };
  holders: {
    root: string;
    text: string;
    file: string | null;
    line: number | null;
    function: string;
    path: { kind: string; name: string; type: string; len: number | null }[];
  }[];
  same_site: { live_blocks: number; live_bytes: number; blocks: number };
}

export interface CompositionNode {
  id: number | string;
  parent: number;
  name: string;
  detail: string | null;
  value: number;
  base: number | null;
  self: number;
  blocks: number;
  kind: string;
  user: boolean;
  file: string | null;
  line: number | null;
  site: number | null;
  depth: number;
}

export interface Composition {
  by: string;
  weight: string;
  t: number | null;
  base: number | null;
  total: number;
  base_total: number | null;
  nodes: CompositionNode[];
}

export interface SiteRow {
  site: number;
  place: string;
  function: string;
  text: string | null;
  file: string | null;
  line: number | null;
  user: boolean;
  live_bytes: number;
  live_blocks: number;
  peak_bytes: number;
  peak_time: number;
  allocs: number;
  alloc_bytes: number;
  bytes_per_step: number | null;
  lifetime_ns: number | null;
  owner: string | null;
  verdict: number | null;
  spark: number[];
}

export interface Sites {
  total: number;
  step_source: string;
  points: number;
  rows: SiteRow[];
}

export interface Source {
  file: string;
  first_line: number;
  lines: string[];
  line: number;
  end_line: number | null;
  newer_than_process: boolean;
  truncated: boolean;
}

export type Cell = string | number | boolean | null;
export type ColumnType = 'id' | 'address' | 'bytes' | 'time' | 'duration' | 'int' | 'text' | 'bool';

export interface Rows {
  total: number;
  all: number;
  offset: number;
  columns: { name: string; type: ColumnType }[];
  rows: Cell[][];
  sum: { size?: number };
}

export interface CompareRow {
  name: string;
  detail: string | null;
  a_bytes: number;
  b_bytes: number;
  a_blocks: number;
  b_blocks: number;
  delta: number;
  site_a: number | null;
  site_b: number | null;
}

export interface Comparison {
  a: { pool: number; t: number; bytes: number; blocks: number };
  b: { pool: number; t: number; bytes: number; blocks: number };
  rows: CompareRow[];
}

export interface PoolMap {
  available: boolean;
  why?: string;
  collect?: string;
}

/** A condition of `where` (§8). */
export type Condition =
  | { column: string; op: string; value: unknown }
  | { op: 'alive_at' | 'born_in' | 'unfreed_in' | 'verdict' | 'stack_has'; value: unknown }
  | { op: 'class'; colour: string; value: number[] };
