// The server's filters and sorting (docs/view-api.md §8) on rows that are here: for reports.

import type { Cell, Condition } from './types';

type Row = readonly Cell[];

/** Whether a row fulfils a condition. What needs more than the row has (stacks, classes) is fulfilled. */
export function keeps(condition: Condition, row: Row, names: readonly string[]): boolean {
  const cell = (name: string): Cell => row[names.indexOf(name)] ?? null;
  if (condition.op === 'born_in' || condition.op === 'unfreed_in') {
    const [t0, t1] = condition.value as [number, number];
    const begin = Number(cell('begin'));
    const end = cell('end');
    const born = begin >= t0 && begin < t1;
    return born && (condition.op === 'born_in' || end === null || Number(end) >= t1);
  }
  if (condition.op === 'alive_at') {
    const end = cell('end');
    return Number(cell('begin')) <= Number(condition.value) && (end === null || Number(end) > Number(condition.value));
  }
  if (!('column' in condition)) return true;
  const value = cell(condition.column);
  const { op, value: wanted } = condition;
  if (op === 'is') return wanted === null ? value === null : value !== null;
  if (value === null) return false;
  if (op === 'contains') return String(value).toLowerCase().includes(String(wanted).toLowerCase());
  if (op === 'in') {
    const [low, high] = wanted as [Cell, Cell];
    return order(value, low) >= 0 && order(value, high) <= 0;
  }
  const side = order(value, wanted as Cell);
  switch (op) {
    case '=': return side === 0;
    case '!=': return side !== 0;
    case '<': return side < 0;
    case '<=': return side <= 0;
    case '>': return side > 0;
    case '>=': return side >= 0;
    default: return true;
  }
}

/** Addresses are longer than numbers can hold: they compare as big integers. */
function order(a: Cell, b: Cell): number {
  if (typeof a === 'string' && typeof b === 'string' && a.startsWith('0x') && b.startsWith('0x')) {
    const x = BigInt(a);
    const y = BigInt(b);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (typeof a === 'number' || typeof b === 'number') return Number(a) - Number(b);
  return String(a).localeCompare(String(b));
}

/** "size:desc,begin:asc"; what is unknown comes last. */
export function compareRows(sort: string, a: Row, b: Row, names: readonly string[]): number {
  for (const word of sort.split(',')) {
    const [column = '', direction] = word.split(':');
    const x = a[names.indexOf(column)] ?? null;
    const y = b[names.indexOf(column)] ?? null;
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1;
      continue;
    }
    const side = order(x, y);
    if (side !== 0) return direction === 'desc' ? -side : side;
  }
  return 0;
}
