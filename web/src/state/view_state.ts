// The whole view as one value, and as a link: what the URL's fragment holds is what a colleague sees.
//
// The fragment is "key=value&…" with only what differs from the opening view. Decoding takes any
// text: what it cannot read it leaves at the opening view's value.

export const kOrders = ['alloc', 'lifetime', 'site', 'owner'] as const;
export const kColours = ['site', 'owner', 'size', 'age', 'step', 'thread', 'verdict'] as const;
export const kSamples = ['peak', 'floor'] as const;
export const kTabs = ['sites', 'composition', 'blocks', 'events', 'compare', 'pool'] as const;
export const kShapes = ['icicle', 'treemap'] as const;
export const kGroups = ['stack', 'stack_inverted', 'owner', 'site', 'thread', 'size'] as const;
export const kWeights = ['live', 'blocks', 'leaked', 'allocs', 'alloc_bytes', 'byte_time'] as const;
export const kCompareBy = ['site', 'owner', 'stack'] as const;

export type Order = (typeof kOrders)[number];
export type Colour = (typeof kColours)[number];
export type Sample = (typeof kSamples)[number];
export type Tab = (typeof kTabs)[number];
export type Shape = (typeof kShapes)[number];
export type Group = (typeof kGroups)[number];
export type CompareBy = (typeof kCompareBy)[number];
export type Weight = (typeof kWeights)[number];

export interface SortKey {
  column: string;
  descending: boolean;
}

/** What a table shows: sort keys, most important first, and a filter text a column. */
export interface TableState {
  sort: SortKey[];
  filters: Record<string, string>;
}

export interface ViewState {
  /** Which pool (a layer on a device of one process); null: the one the server opens with. */
  pool: number | null;
  /** Pools that are shown one above the other; none: only that one. */
  panes: readonly number[];
  /** The window, ns since the start of the run; null: the whole run. */
  time: readonly [number, number] | null;
  /** The window in bytes; null: from zero to the top. */
  bytes: readonly [number, number] | null;
  order: Order;
  colour: Colour;
  sample: Sample;
  tidy: boolean;
  /** Curves of what the process's memory is made of, below the others. */
  parts: boolean;
  /** Classes of the legend that are switched off. */
  hidden: readonly number[];
  tab: Tab;
  verdict: string | null;
  site: number | null;
  block: number | null;
  pins: readonly number[];
  /** The instant of the composition (null: the peak; −1: the end), and the one it is compared with. */
  at: number | null;
  against: number | null;
  by: Group;
  shape: Shape;
  weight: Weight;
  /** Path of the node the composition is zoomed to. */
  zoom: string;
  search: string;
  blocks: TableState;
  events: TableState;
  sites: TableState;
  /** What is compared, as the server names it: "POOL@step:3", "POOL@peak", "POOL@1200000". */
  base: string | null;
  other: string | null;
  compareBy: CompareBy;
}

/** More would each be too low to be read. */
export const kMostPanes = 8;

const kNoTable: TableState = { sort: [], filters: {} };

export const kOpening: ViewState = {
  pool: null,
  panes: [],
  time: null,
  bytes: null,
  order: 'alloc',
  colour: 'site',
  sample: 'peak',
  tidy: true,
  parts: false,
  hidden: [],
  tab: 'sites',
  verdict: null,
  site: null,
  block: null,
  pins: [],
  at: null,
  against: null,
  by: 'stack',
  shape: 'icicle',
  weight: 'live',
  zoom: '',
  search: '',
  blocks: kNoTable,
  events: kNoTable,
  sites: kNoTable,
  base: null,
  other: null,
  compareBy: 'site',
};

const kTables = ['blocks', 'events', 'sites'] as const;

export function encodeView(view: ViewState): string {
  const parts = new URLSearchParams();
  const text = (key: string, value: string | null, opening: string | null): void => {
    if (value !== null && value !== opening) parts.set(key, value);
  };
  const range = (key: string, value: readonly [number, number] | null): void => {
    if (value) parts.set(key, `${Math.round(value[0])}-${Math.round(value[1])}`);
  };
  const number = (key: string, value: number | null): void => {
    if (value !== null) parts.set(key, String(Math.round(value)));
  };
  const list = (key: string, values: readonly number[]): void => {
    if (values.length > 0) parts.set(key, values.join('.'));
  };
  number('pool', view.pool);
  list('panes', view.panes);
  range('t', view.time);
  range('m', view.bytes);
  text('order', view.order, kOpening.order);
  text('colour', view.colour, kOpening.colour);
  text('sample', view.sample, kOpening.sample);
  if (!view.tidy) parts.set('tidy', '0');
  if (view.parts) parts.set('parts', '1');
  list('hide', view.hidden);
  text('tab', view.tab, kOpening.tab);
  text('verdict', view.verdict, null);
  number('site', view.site);
  number('block', view.block);
  list('pin', view.pins);
  if (view.at === -1) parts.set('at', 'end');
  else number('at', view.at);
  number('against', view.against);
  text('by', view.by, kOpening.by);
  text('shape', view.shape, kOpening.shape);
  text('weight', view.weight, kOpening.weight);
  text('zoom', view.zoom, '');
  text('search', view.search, '');
  text('base', view.base, null);
  text('other', view.other, null);
  text('diff', view.compareBy, kOpening.compareBy);
  for (const name of kTables) {
    const table = view[name];
    if (table.sort.length > 0) {
      parts.set(`${name}.sort`, table.sort.map((key) => (key.descending ? '-' : '') + key.column).join(','));
    }
    for (const [column, filter] of Object.entries(table.filters)) {
      if (filter !== '') parts.set(`${name}.${column}`, filter);
    }
  }
  return parts.toString();
}

export function decodeView(fragment: string): ViewState {
  const parts = new URLSearchParams(fragment.replace(/^#/, ''));
  const one = <T extends string>(key: string, allowed: readonly T[], opening: T): T => {
    const value = parts.get(key);
    return allowed.find((word) => word === value) ?? opening;
  };
  const number = (key: string): number | null => {
    const value = parts.get(key);
    return value !== null && /^\d{1,16}$/.test(value) ? Number(value) : null;
  };
  const range = (key: string): [number, number] | null => {
    const match = /^(\d{1,16})-(\d{1,16})$/.exec(parts.get(key) ?? '');
    const low = Number(match?.[1]);
    const high = Number(match?.[2]);
    return match && high > low ? [low, high] : null;
  };
  const list = (key: string): number[] =>
    (parts.get(key) ?? '')
      .split('.')
      .filter((word) => /^\d{1,16}$/.test(word))
      .map(Number)
      .slice(0, 64);
  const table = (name: string): TableState => {
    const state: TableState = { sort: [], filters: {} };
    for (const word of (parts.get(`${name}.sort`) ?? '').split(',')) {
      const column = word.replace(/^-/, '');
      if (/^[a-z_]{1,32}$/.test(column)) state.sort.push({ column, descending: word.startsWith('-') });
    }
    for (const [key, value] of parts) {
      if (key.startsWith(`${name}.`) && key !== `${name}.sort`) {
        const column = key.slice(name.length + 1);
        if (/^[a-z_]{1,32}$/.test(column)) state.filters[column] = value.slice(0, 512);
      }
    }
    return state;
  };
  const short = (key: string): string | null => parts.get(key)?.slice(0, 512) ?? null;
  return {
    pool: number('pool'),
    panes: [...new Set(list('panes'))].slice(0, kMostPanes),
    time: range('t'),
    bytes: range('m'),
    order: one('order', kOrders, kOpening.order),
    colour: one('colour', kColours, kOpening.colour),
    sample: one('sample', kSamples, kOpening.sample),
    tidy: parts.get('tidy') !== '0',
    parts: parts.get('parts') === '1',
    hidden: list('hide'),
    tab: one('tab', kTabs, kOpening.tab),
    verdict: short('verdict'),
    site: number('site'),
    block: number('block'),
    pins: list('pin').slice(0, 2),
    at: parts.get('at') === 'end' ? -1 : number('at'),
    against: number('against'),
    by: one('by', kGroups, kOpening.by),
    shape: one('shape', kShapes, kOpening.shape),
    weight: one('weight', kWeights, kOpening.weight),
    zoom: short('zoom') ?? '',
    search: short('search') ?? '',
    blocks: table('blocks'),
    events: table('events'),
    sites: table('sites'),
    base: short('base'),
    other: short('other'),
    compareBy: one('diff', kCompareBy, kOpening.compareBy),
  };
}
