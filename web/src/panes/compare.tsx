// What one instant holds that another does not: two steps of a run, two runs, two ranks.

import { useEffect, useState } from 'preact/hooks';

import { ask } from '../api/client';
import type { CompareRow, Comparison, Pool, Steps } from '../api/types';
import { formatBytes, formatBytesSigned, formatCount } from '../format/bytes';
import { shorten } from '../format/path';
import { type Key, t } from '../i18n';
import { patch, pool, session, steps, view } from '../state/store';
import { kCompareBy } from '../state/view_state';
import type { TableRecord } from '../format/csv';
import { Downloads } from '../ui/download';
import { Empty } from '../ui/empty';
import { Icon } from '../ui/icon';
import { Select } from '../ui/select';

export interface Side {
  pool: number;
  at: string;
}

/** "0@step:3" ↔ pool 0 at the end of step 3. */
export function parseSide(text: string | null): Side | null {
  const match = /^(\d{1,9})@(peak|end|step:\d{1,12}|\d{1,16})$/.exec(text ?? '');
  return match ? { pool: Number(match[1]), at: match[2] ?? 'peak' } : null;
}

export function sideText(side: Side): string {
  return `${side.pool}@${side.at}`;
}

/** Step 3 against the last: the first steps warm up. With one step or none: another input's peak. */
export function openingSides(here: Pool, pools: readonly Pool[], known: Steps | null): [Side, Side] | null {
  const last = known ? known.first_number + known.ends.length - 1 : 0;
  if (known && known.ends.length >= 2) {
    const first = Math.min(known.first_number + 2, last - 1);
    return [{ pool: here.id, at: `step:${first}` }, { pool: here.id, at: `step:${last}` }];
  }
  const other = pools.find((candidate) => candidate.id !== here.id && candidate.device === here.device && candidate.layer === here.layer);
  return other ? [{ pool: here.id, at: 'peak' }, { pool: other.id, at: 'peak' }] : null;
}

export function ComparePane() {
  const here = pool.value;
  const open = session.value;
  const { base, other, compareBy } = view.value;
  const [data, setData] = useState<Comparison | null>(null);
  const [error, setError] = useState<string | null>(null);
  const opening = here && open ? openingSides(here, open.pools, steps.value) : null;
  const a = parseSide(base) ?? opening?.[0] ?? null;
  const b = parseSide(other) ?? opening?.[1] ?? null;
  const key = a && b ? `${sideText(a)}|${sideText(b)}|${compareBy}|${open?.generation ?? 0}` : '';
  useEffect(() => {
    let current = true;
    if (!a || !b) return undefined;
    ask<Comparison>('compare', { a: sideText(a), b: sideText(b), by: compareBy, limit: 5000 }).then(
      (answer) => {
        if (!current) return;
        setData(answer);
        setError(null);
      },
      (reason: unknown) => current && setError(reason instanceof Error ? reason.message : String(reason)),
    );
    return () => {
      current = false;
    };
  }, [key]);
  if (!here || !open) return null;
  if (!a || !b) return <Empty title={t('compare.empty')} action={t('compare.empty.do')} />;
  const nameA = sideName(a, a.pool !== b.pool);
  const nameB = sideName(b, a.pool !== b.pool);
  return (
    <div class="compare">
      <div class="toolbar">
        <SideField label={t('compare.base')} side={a} onChange={(side) => patch({ base: sideText(side), other: sideText(b) })} />
        <button type="button" class="icon" title={t('compare.swap')} aria-label={t('compare.swap')} onClick={() => patch({ base: sideText(b), other: sideText(a) })}>
          <Icon name="swap" />
        </button>
        <SideField label={t('compare.other')} side={b} onChange={(side) => patch({ base: sideText(a), other: sideText(side) })} />
        <Select label={t('compare.by')} value={compareBy} options={kCompareBy.map((by) => [by, t(`composition.by.${by}` as Key)])}
          onChange={(by) => patch({ compareBy: by })} />
        <span class="space" />
        {data && <b class="summary">{summary(data, nameA, nameB)}</b>}
        {data && <Downloads name="compare" records={() => records(data)} />}
      </div>
      {error !== null && <p class="error">{error}</p>}
      {data && <Differences data={data} nameA={nameA} nameB={nameB} />}
    </div>
  );
}

function records(data: Comparison): TableRecord[] {
  return data.rows.map(({ name, detail, delta, a_bytes, b_bytes, a_blocks, b_blocks }) => ({
    name, detail, delta, a_bytes, b_bytes, a_blocks, b_blocks,
  }));
}

function summary(data: Comparison, nameA: string, nameB: string): string {
  const delta = data.b.bytes - data.a.bytes;
  if (delta === 0) return t('compare.sum.same', nameB, nameA);
  return t(delta > 0 ? 'compare.sum' : 'compare.sum.less', formatBytes(Math.abs(delta)), nameB, nameA);
}

function sideName(side: Side, withPool: boolean): string {
  const at = side.at === 'peak' ? t('composition.peak') : side.at === 'end' ? t('composition.end')
    : side.at.startsWith('step:') ? t('word.step', side.at.slice(5)) : side.at;
  return withPool ? `${poolName(side.pool)} ${at}` : at;
}

function poolName(id: number): string {
  const open = session.value;
  const found = open?.pools.find((candidate) => candidate.id === id);
  const from = open?.inputs.find((candidate) => candidate.id === found?.input);
  if (!found) return String(id);
  const rank = from?.process?.rank;
  const prefix = (open?.inputs.length ?? 0) > 1 ? `${rank === null || rank === undefined ? shorten(from?.name ?? '', 30) : t('word.rank', rank)} · ` : '';
  return `${prefix}${found.name}`;
}

function SideField({ label, side, onChange }: { label: string; side: Side; onChange: (side: Side) => void }) {
  const open = session.value;
  const mine = open?.pools.find((candidate) => candidate.id === side.pool);
  const from = open?.inputs.find((candidate) => candidate.id === mine?.input);
  const kind = side.at.startsWith('step:') ? 'step' : side.at === 'peak' || side.at === 'end' ? side.at : 'end';
  const most = from?.steps ?? 0;
  return (
    <fieldset class="side">
      <legend>{label}</legend>
      {(open?.pools.length ?? 0) > 1 && (
        <Select label={t('app.lane')} hideLabel value={String(side.pool)} options={(open?.pools ?? []).map((candidate) => [String(candidate.id), poolName(candidate.id)])}
          onChange={(id) => onChange({ ...side, pool: Number(id) })} />
      )}
      <Select label={label} hideLabel value={kind}
        options={[...(most > 0 ? [['step', t('compare.step')] as const] : []), ['peak', t('composition.peak')], ['end', t('composition.end')]]}
        onChange={(next) => onChange({ ...side, at: next === 'step' ? `step:${Math.max(most, 1)}` : next })} />
      {kind === 'step' && (
        <input
          type="number" min={0} max={most} value={side.at.slice(5)} aria-label={`${label} ${t('compare.step')}`}
          onChange={(event) => {
            const number = Math.round(Number(event.currentTarget.value));
            if (number >= 0 && number <= most) onChange({ ...side, at: `step:${number}` });
          }}
        />
      )}
    </fieldset>
  );
}

function Differences({ data, nameA, nameB }: { data: Comparison; nameA: string; nameB: string }) {
  const rows = data.rows.filter((row) => row.delta !== 0 || row.a_blocks !== row.b_blocks);
  const most = Math.max(...rows.map((row) => Math.abs(row.delta)), 1);
  if (rows.length === 0) return <Empty title={t('compare.same')} />;
  return (
    <div class="differences">
      <table>
        <thead>
          <tr>
            <th>{t(`composition.by.${view.value.compareBy}` as Key)}</th>
            <th class="number">{t('compare.difference')}</th>
            <th aria-hidden="true" />
            <th class="number">{nameA}</th>
            <th class="number">{nameB}</th>
            <th class="number">{t('compare.blocks')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, 500).map((row, index) => <Difference key={index} row={row} most={most} />)}
        </tbody>
      </table>
    </div>
  );
}

function Difference({ row, most }: { row: CompareRow; most: number }) {
  const share = Math.abs(row.delta) / most;
  const site = row.site_b ?? row.site_a;
  const blocks = row.b_blocks - row.a_blocks;
  const open = (): void => {
    if (site !== null && site > 0) patch({ site, tab: 'blocks', blocks: { sort: [{ column: 'begin', descending: true }], filters: { site_id: `=${site}` } } });
    else if (view.value.compareBy === 'owner') patch({ tab: 'blocks', blocks: { sort: [], filters: { owner: `= ${row.name}` } } });
  };
  return (
    <tr tabIndex={0} onClick={open} onKeyDown={(event) => event.key === 'Enter' && open()}>
      <td class="name" title={[row.name, row.detail].filter(Boolean).join('\n')}>
        <b class="place">{shorten(row.name, 80)}</b> {row.detail !== null && <code>{shorten(row.detail, 90)}</code>}
      </td>
      <td class={row.delta > 0 ? 'number grown' : 'number shrunk'}>{formatBytesSigned(row.delta)}</td>
      <td class="bar"><i class={row.delta > 0 ? 'grown' : 'shrunk'} style={{ width: `${Math.max(share * 100, 1)}%` }} /></td>
      <td class="number">{formatBytes(row.a_bytes)}</td>
      <td class="number">{formatBytes(row.b_bytes)}</td>
      <td class="number">{blocks > 0 ? `+${formatCount(blocks)}` : formatCount(blocks)}</td>
    </tr>
  );
}
