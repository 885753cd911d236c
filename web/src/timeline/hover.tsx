// What is under the pointer: a block's facts, asked for once the pointer rests.

import { effect, signal } from '@preact/signals';

import { ask, isAbort } from '../api/client';
import type { Hover, Located } from '../api/types';
import type { Hit } from '../api/wire';
import { formatBytes, formatBytesExact, formatPercent } from '../format/bytes';
import { formatDuration, formatInstant } from '../format/time';
import { shorten } from '../format/path';
import { t } from '../i18n';
import { pool, session, shownPools, timeWindow, view } from '../state/store';
import type { LaneItem } from './lanes';
import { legendOf, lineData } from './data';
import { classList, className } from './legend';
import { lineLook } from './look';

export interface Hovered {
  /** The pane's. */
  pool: number;
  x: number;
  y: number;
  time: number;
  bytes: number;
  hit: Hit | null;
  floor: boolean;
  lane?: LaneItem;
}

export const hovered = signal<Hovered | null>(null);
const summary = signal<Hover | null>(null);

export function followHover(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return effect(() => {
    const now = hovered.value;
    clearTimeout(timer);
    const hit = now?.hit;
    if (!now || !hit) {
      summary.value = null;
      return;
    }
    const here = now.pool;
    const known = legendOf(here);
    const classes = known && here === pool.value?.id ? classList(known, view.value.hidden) : null;
    if (summary.peek()?.block !== hit.block) summary.value = null;
    timer = setTimeout(() => {
      const asked =
        hit.block !== null
          ? ask<Hover>('hover', { pool: here, block: hit.block })
          : ask<Located>('locate', {
              pool: here, state: hit.state, bytes: Math.max(0, Math.floor(now.bytes)), order: view.value.order,
              colour: view.value.colour, classes,
            }).then((found) => found.summary);
      asked.then(
        (answer) => {
          if (hovered.value === now) summary.value = answer;
        },
        (error: unknown) => {
          if (!isAbort(error)) summary.value = null;
        },
      );
    }, 60);
  });
}

/** "main (4711)", whatever shape the server gives a thread. */
export function threadText(thread: unknown): string {
  if (typeof thread === 'string' || typeof thread === 'number') return String(thread);
  if (thread !== null && typeof thread === 'object') {
    const { name, tid, id } = thread as { name?: string; tid?: number; id?: number };
    const number = tid ?? id;
    if (name && number !== undefined && name.includes(String(number))) return name;
    return [name, number === undefined ? '' : `(${number})`].filter(Boolean).join(' ');
  }
  return '';
}

export function HoverCard() {
  const now = hovered.value;
  if (!now) return null;
  const rows: [string, string][] = now.lane ? laneFacts(now.lane) : now.hit ? blockFacts(now.hit, now.pool) : [];
  if (!now.lane) rows.push(...lineFacts(now.time, now.pool));
  if (rows.length === 0) return null;
  const right = now.x > globalThis.innerWidth * 0.55;
  const style = {
    top: `${now.y + 14}px`,
    ...(right ? { right: `calc(100% - ${now.x - 14}px)` } : { left: `${now.x + 14}px` }),
  };
  const statement = !now.lane && summary.value?.site ? summary.value.site.text : null;
  return (
    <div class="hover" style={style} role="status">
      {statement !== null && <code>{shorten(statement, 90)}</code>}
      <dl>
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {now.hit?.sampled && <p>{t(now.floor ? 'timeline.sampled.floor' : 'timeline.sampled', formatInstant(now.hit.at, resolution()))}</p>}
    </div>
  );
}

function resolution(): number {
  const [t0, t1] = timeWindow.value;
  return (t1 - t0) / 5000;
}

function laneFacts(item: LaneItem): [string, string][] {
  const rows: [string, string][] = [];
  if (item.lane === 'steps') rows.push([t('block.step'), item.text]);
  else if (item.lane === 'oom') rows.push([t('timeline.oom'), item.text]);
  else rows.push([t('table.name'), shorten(item.text, 80)]);
  rows.push([t('table.time'), formatInstant(item.begin, resolution())]);
  if (item.end > item.begin) rows.push([t('block.lifetime'), formatDuration(item.end - item.begin)]);
  return rows;
}

function blockFacts(hit: Hit, pane: number): [string, string][] {
  const facts = summary.value;
  if (!facts) {
    const entry = legendOf(pane)?.classes.find((candidate) => candidate.id === hit.cls);
    return [
      [t('block.class'), entry ? shorten(className(entry), 50) : ''],
      [t('block.size'), formatBytes(hit.to - hit.from)],
    ];
  }
  const rows: [string, string][] = [
    [t('block.site'), facts.site ? shorten(facts.site.place, 60) : t('word.native')],
    [t('block.size'), facts.size < 1024 ? formatBytesExact(facts.size) : `${formatBytes(facts.size)} (${formatBytesExact(facts.size)})`],
    [t('block.address'), facts.address],
  ];
  if (facts.owner !== null) rows.push([t('block.owner'), shorten(facts.owner, 60)]);
  const born = facts.preexisting ? t('word.before') : formatInstant(facts.begin, resolution());
  rows.push([t('block.alloc'), facts.step === null ? born : `${born} · ${t('word.step', facts.step)}`]);
  rows.push([t('block.lifetime'), facts.lifetime === null ? t('word.alive') : formatDuration(facts.lifetime)]);
  if (hit.total > 0) rows.push([t('word.total'), `${formatPercent(facts.size / hit.total)} · ${formatBytes(hit.total)}`]);
  return rows;
}

function lineFacts(time: number, pane: number): [string, string][] {
  const data = lineData.value;
  if (!data || time < data.time[0] || time >= data.time[1]) return [];
  const index = Math.floor(((time - data.time[0]) / (data.time[1] - data.time[0])) * data.x.length);
  const rows: [string, string][] = [];
  const here = session.value?.pools.find((candidate) => candidate.id === pane) ?? null;
  for (const series of data.series) {
    const value = series.values[index];
    if (value === null || value === undefined) continue;
    const look = lineLook(series.key, here);
    // With several panes each says what is its own.
    if (look.over || shownPools.value.length === 1) rows.push([look.style.label, formatBytes(value)]);
  }
  return rows;
}
