// The tables of blocks and of events: the columns the server names, its filters, its exports.

import { useEffect, useState } from 'preact/hooks';

import { ask, downloadAddress } from '../api/client';
import type { Cell, ColumnType, Rows } from '../api/types';
import { formatBytes, formatCount } from '../format/bytes';
import { formatDuration, formatInstant } from '../format/time';
import { shorten } from '../format/path';
import { type Key, t } from '../i18n';
import { kDictionaries } from '../i18n';
import { edition, jumpTo, kShortestTime, patch, pool, selectBlock, session, timeWindow, view, wholeTime } from '../state/store';
import { frameRange } from '../timeline/viewport';
import type { TableState } from '../state/view_state';
import { Empty } from '../ui/empty';
import { Icon } from '../ui/icon';
import { Grid, type GridColumn } from './grid';
import { onlyWindow, parseFilters, sortText } from './filters';
import { WindowSwitch } from './window_switch';

type Table = 'blocks' | 'events';
type Row = Cell[];

// The columns shown, in order; what the server has beside them is for filters and exports.
const kShown: Record<Table, readonly string[]> = {
  blocks: ['block', 'size', 'site', 'begin', 'end', 'lifetime', 'step', 'end_step', 'function', 'owner', 'address', 'thread'],
  events: ['event', 'kind', 'time', 'size', 'block', 'site', 'allocated', 'step', 'function', 'owner', 'address', 'thread'],
};

const kTypes: Record<Table, Record<string, ColumnType>> = {
  blocks: {
    block: 'id', address: 'address', size: 'bytes', begin: 'time', end: 'time', lifetime: 'duration', step: 'int', end_step: 'int',
    owner: 'text', site: 'text', function: 'text', thread: 'text', state: 'text', site_id: 'int', stack_id: 'int',
  },
  events: {
    event: 'id', kind: 'text', time: 'time', block: 'id', address: 'address', size: 'bytes', step: 'int', allocated: 'bytes',
    owner: 'text', site: 'text', function: 'text', thread: 'text', site_id: 'int', stack_id: 'int',
  },
};

const kTracks: Partial<Record<string, string>> = {
  block: '84px', event: '84px', kind: '72px', address: '138px', size: '104px', allocated: '104px', begin: '104px', end: '104px',
  time: '104px', lifetime: '92px', step: '64px', end_step: '84px', site: 'minmax(196px, 2fr)', function: 'minmax(130px, 1.4fr)',
  owner: 'minmax(90px, 1fr)', thread: 'minmax(80px, 0.7fr)',
};

function columnLabel(name: string): string {
  const key = `table.${name}`;
  return key in kDictionaries.en ? t(key as Key) : name;
}

function placeholder(type: ColumnType): string {
  if (type === 'bytes') return t('table.filter.bytes');
  if (type === 'time' || type === 'duration') return t('table.filter.time');
  if (type === 'address') return t('table.filter.address');
  if (type === 'text') return t('table.filter.text');
  return t('table.filter.number');
}

function CellText({ value, name, type }: { value: Cell; name: string; type: ColumnType }) {
  if (value === null) return <span class="faint">{name === 'end' ? t('word.never') : '–'}</span>;
  if (typeof value === 'number') {
    if (type === 'bytes') return <>{formatBytes(value)}</>;
    if (type === 'time') return <>{formatInstant(value, 1e4)}</>;
    if (type === 'duration') return <>{formatDuration(value)}</>;
    return <>{type === 'id' ? String(value) : formatCount(value)}</>;
  }
  const text = String(value);
  return <span title={text.length > 60 ? shorten(text, 2000) : text}>{shorten(text, 100)}</span>;
}

function whereOf(table: Table, state: TableState): { where: string | null; wrong: string[] } {
  const { conditions, wrong } = parseFilters(state.filters, kTypes[table]);
  if (onlyWindow(state)) {
    const [t0, t1] = timeWindow.value;
    if (table === 'events') conditions.push({ column: 'time', op: 'in', value: [Math.floor(t0), Math.ceil(t1)] });
    else conditions.push({ op: 'born_in', value: [Math.floor(t0), Math.ceil(t1)] });
  }
  return { where: conditions.length > 0 ? JSON.stringify(conditions) : null, wrong };
}

export function RowsPane({ table }: { table: Table }) {
  const here = pool.value;
  const state = view.value[table];
  const [places, setPlaces] = useState<ReadonlyMap<string, number>>(new Map());
  const [sum, setSum] = useState<number | null>(null);
  const [reveal, setReveal] = useState<number | null>(null);
  const { where, wrong } = whereOf(table, state);
  const sort = sortText(state.sort);
  const { block } = view.value;

  // From the graph to the table: the chosen block's row comes into view, if the result holds it.
  useEffect(() => {
    let current = true;
    setReveal(null);
    if (!here || block === null || table !== 'blocks') return undefined;
    ask<{ offset: number | null }>('index', { pool: here.id, table, block, where, sort }).then(
      (answer) => current && setReveal(answer.offset),
      () => undefined,
    );
    return () => {
      current = false;
    };
  }, [here?.id, edition.value, block, where, sort]);

  if (!here) return null;
  const names = kShown[table].filter((name) => name !== 'owner' || here.owners);
  const columns: GridColumn<Row>[] = names.map((name) => {
    const type = kTypes[table][name] ?? 'text';
    return {
      key: name,
      label: columnLabel(name === 'block' && table === 'blocks' ? 'id' : name === 'event' ? 'id' : name === 'begin' ? 'alloc' : name === 'end' ? 'free' : name === 'end_step' ? 'free_step' : name),
      track: kTracks[name] ?? '100px',
      numeric: type !== 'text',
      sortable: true,
      filter: placeholder(type),
      cell: (row) => <CellText value={row[places.get(name) ?? -1] ?? null} name={name} type={type} />,
    };
  });
  const at = (row: Row, name: string): number | null => {
    const value = row[places.get(name) ?? -1];
    return typeof value === 'number' ? value : null;
  };
  return (
    <Grid<Row>
      label={t(`tab.${table}` as Key)}
      columns={columns}
      rowsKey={[table, here.id, where, sort].join('|')}
      generation={edition.value}
      load={async (offset, limit) => {
        const answer = await ask<Rows>(table, { pool: here.id, where, sort, offset, limit });
        setPlaces(new Map(answer.columns.map((column, index) => [column.name, index])));
        setSum(answer.sum.size ?? null);
        return { total: answer.total, rows: answer.rows };
      }}
      table={state}
      onTable={(next) => patch({ [table]: next })}
      wrong={wrong}
      idOf={(row) => at(row, 'block') ?? -1}
      selected={block}
      onOpen={(row) => {
        const id = at(row, 'block');
        if (id !== null) selectBlock(id);
        const time = at(row, 'time');
        if (time !== null) centre(time);
      }}
      reveal={reveal}
      empty={state.sort.length + Object.keys(state.filters).length === 0 && here.blocks === 0
        ? <Empty title={t('timeline.empty')} action={t('timeline.empty.do')} /> : undefined}
      bar={
        <>
          <Chips table={table} state={state} />
          {sum !== null && table === 'blocks' && <span class="sum">{t('word.total')} {formatBytes(sum)}</span>}
          <WindowSwitch state={state} onChange={(next) => patch({ [table]: next })} />
          <Export table={table} pool={here.id} where={where} sort={sort} />
        </>
      }
    />
  );
}

// An event out of the window brings the window to it.
function centre(time: number): void {
  const [t0, t1] = timeWindow.value;
  if (time >= t0 && time <= t1) return;
  jumpTo(frameRange([time, time], 0.5, wholeTime.value, Math.max(t1 - t0, kShortestTime)), view.value.bytes);
}

// Filters that no column shows.
function Chips({ table, state }: { table: Table; state: TableState }) {
  const shown = new Set(kShown[table]);
  return (
    <>
      {Object.entries(state.filters)
        .filter(([column, text]) => !shown.has(column) && text !== '' && column !== 'window')
        .map(([column, text]) => (
          <button
            key={column} type="button" class="chip filter" title={t('table.clear')}
            onClick={() => patch({ [table]: { ...state, filters: { ...state.filters, [column]: '' } } })}
          >
            {chipText(column, text)}
            <Icon name="close" />
          </button>
        ))}
    </>
  );
}

function chipText(column: string, text: string): string {
  if (column === 'verdict') {
    const verdict = session.value?.diagnosis?.verdicts[Number(text)];
    const key = `verdict.${verdict?.cause ?? ''}`;
    return t('verdict.evidence', key in kDictionaries.en ? t(key as Key) : (verdict?.cause ?? text));
  }
  if (column === 'site_id') return t('sites.only');
  if (column === 'stack') return shorten(text, 40);
  return `${columnLabel(column)} ${shorten(text, 30)}`;
}

function Export({ table, pool: id, where, sort }: { table: Table; pool: number; where: string | null; sort: string | null }) {
  const address = (format: string): string | null => downloadAddress(table, { pool: id, where, sort, format });
  const csv = address('csv');
  const json = address('json');
  if (csv === null || json === null) return null;
  return (
    <span class="exports">
      <Icon name="export" />
      {t('table.export')}
      <a href={csv} download={`${table}.csv`}>CSV</a>
      <a href={json} download={`${table}.json`}>JSON</a>
    </span>
  );
}
