// What may be typed above a column → conditions for the server (docs/view-api.md §8).

import { parseAddress } from '../format/address';
import { parseBytes } from '../format/bytes';
import { parseInstant } from '../format/time';
import type { ColumnType, Condition } from '../api/types';

const kNothing = /^(null|none|never|live|无|–|-)$/i;

/** The number in the server's spelling: bytes and counts as integers, times as ns. Null: not one. */
function numberOf(text: string, type: ColumnType): number | string | null {
  if (type === 'bytes') return parseBytes(text);
  if (type === 'time' || type === 'duration') return parseInstant(text);
  if (type === 'address') return parseAddress(text);
  return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : parseBytes(text);
}

/**
 * "64k", "> 64k", "<= 1M", "1M..2M", "!= 0", "never" for numbers; part of a text, "= all of it" and
 * "!= not it" for texts. Null where it is none of these.
 */
export function parseFilter(column: string, type: ColumnType, text: string): Condition | null {
  const trimmed = text.trim();
  if (type === 'text' || type === 'bool') {
    const match = /^(!?=)\s*(.*)$/.exec(trimmed);
    return match ? { column, op: match[1] ?? '=', value: match[2] ?? '' } : { column, op: 'contains', value: trimmed };
  }
  if (kNothing.test(trimmed)) return { column, op: 'is', value: null };
  if (/^(set|!null|有)$/i.test(trimmed)) return { column, op: 'is', value: 'set' };
  const range = /^(.+?)\s*(?:\.\.|…)\s*(.+)$/.exec(trimmed);
  if (range) {
    const low = numberOf(range[1] ?? '', type);
    const high = numberOf(range[2] ?? '', type);
    return low === null || high === null ? null : { column, op: 'in', value: [low, high] };
  }
  const compared = /^(>=|<=|!=|>|<|=)?\s*(.+)$/.exec(trimmed);
  const value = numberOf(compared?.[2] ?? '', type);
  return value === null ? null : { column, op: compared?.[1] ?? '=', value };
}

/** The table follows the window of the timeline. */
export function onlyWindow(state: { filters: Readonly<Record<string, string>> }): boolean {
  return state.filters['window'] === '1';
}

export interface Filters {
  conditions: Condition[];
  /** Columns whose filter cannot be understood. */
  wrong: string[];
}

/** Filters by column, and the whole-row ones: verdict, class, window, stack. */
export function parseFilters(
  filters: Readonly<Record<string, string>>, types: Readonly<Record<string, ColumnType>>,
): Filters {
  const conditions: Condition[] = [];
  const wrong: string[] = [];
  for (const [column, text] of Object.entries(filters)) {
    if (text.trim() === '') continue;
    if (column === 'verdict') {
      if (/^\d+$/.test(text)) conditions.push({ op: 'verdict', value: Number(text) });
      continue;
    }
    if (column === 'stack') {
      conditions.push({ op: 'stack_has', value: text });
      continue;
    }
    if (column === 'alive') {
      if (/^\d+$/.test(text)) conditions.push({ op: 'alive_at', value: Number(text) });
      continue;
    }
    const range = /^(\d+)-(\d+)$/.exec(text);
    if (column === 'born' || column === 'unfreed') {
      if (range) conditions.push({ op: column === 'born' ? 'born_in' : 'unfreed_in', value: [Number(range[1]), Number(range[2])] });
      continue;
    }
    const type = types[column];
    if (type === undefined) continue;
    const condition = parseFilter(column, type, text);
    if (condition) conditions.push(condition);
    else wrong.push(column);
  }
  return { conditions, wrong };
}

/** A click on a column: its order turns; with `add` beside the others, else instead of them. */
export function nextSort(
  sort: readonly { column: string; descending: boolean }[], column: string, add: boolean, downFirst: boolean,
): { column: string; descending: boolean }[] {
  const old = sort.find((key) => key.column === column);
  const turned = old ? (old.descending === downFirst ? { column, descending: !downFirst } : null) : { column, descending: downFirst };
  if (!add) return turned ? [turned] : [];
  if (!old) return turned ? [...sort, turned].slice(-4) : [...sort];
  return sort.flatMap((key) => (key.column === column ? (turned ? [turned] : []) : [key]));
}

export function sortText(sort: readonly { column: string; descending: boolean }[]): string | null {
  return sort.length === 0 ? null : sort.map((key) => `${key.column}:${key.descending ? 'desc' : 'asc'}`).join(',');
}
