// The allocation sites: what each holds, how it grows, its curve; its source line and its blocks.

import { ask, type Parameters } from '../api/client';
import type { SiteRow, Sites } from '../api/types';
import { formatBytes, formatBytesSigned, formatCount } from '../format/bytes';
import { formatDuration } from '../format/time';
import { shorten } from '../format/path';
import { t } from '../i18n';
import { edition, patch, pool, timeWindow, view } from '../state/store';
import type { TableRecord } from '../format/csv';
import { Downloads } from '../ui/download';
import { Empty } from '../ui/empty';
import { SourceView } from '../ui/source';
import { Spark } from '../ui/spark';
import { useWidth } from '../ui/use_width';
import { signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { Grid, type GridColumn } from './grid';
import { onlyWindow, sortText } from './filters';
import { WindowSwitch } from './window_switch';

const kBeside = 420; // the source beside the table, at most
const kBesideNarrow = 340;
const chosenRow = signal<SiteRow | null>(null);

/** Narrower than this the statement stands below its place, and the numbers move together. */
const kRoomy = 1160;

/** What goes first where there is no room: nothing is cut off, and nothing hides behind a scroll bar. */
const kDispensable = ['alloc_bytes', 'lifetime_ns', 'allocs', 'peak_bytes', 'live_blocks'];

function columns(narrow: boolean, room: number): GridColumn<SiteRow>[] {
  const all = allColumns(narrow);
  const least = (): number => all.reduce((sum, column) => sum + Number(/\d+/.exec(column.track)?.[0] ?? 0), 24);
  for (const key of kDispensable) {
    if (least() <= room) break;
    all.splice(all.findIndex((column) => column.key === key), 1);
  }
  return all;
}

function allColumns(narrow: boolean): GridColumn<SiteRow>[] {
  const track = (roomy: number, tight: number): string => `${narrow ? tight : roomy}px`;
  return [
    {
      key: 'place', label: t('sites.site'), track: narrow ? 'minmax(250px, 3fr)' : 'minmax(240px, 3fr)', sortable: true, filter: t('sites.search'),
      cell: (row) => (
        <span class="site-cell" title={[row.file, row.function, row.text].filter(Boolean).join('\n')}>
          {row.verdict !== null && <i class="dot" title={t('verdict.leak')} />}
          <b class={row.user ? 'place user' : 'place'}>{row.site === 0 ? t('word.native') : shorten(row.place, 48)}</b>
          {row.text !== null ? <code>{shorten(row.text, 80)}</code> : <span class="function">{shorten(row.function, 60)}</span>}
        </span>
      ),
    },
    { key: 'spark', label: t('sites.curve'), track: track(136, 112), cell: (row) => <Spark values={row.spark} accused={row.verdict !== null} width={narrow ? 96 : 120} /> },
    { key: 'live_bytes', label: t('sites.live'), track: track(104, 82), numeric: true, sortable: true, cell: (row) => formatBytes(row.live_bytes) },
    { key: 'live_blocks', label: t('sites.live_blocks'), track: track(88, 68), numeric: true, sortable: true, cell: (row) => formatCount(row.live_blocks) },
    { key: 'bytes_per_step', label: t('sites.growth'), track: track(104, 88), numeric: true, sortable: true,
      cell: (row) => (row.bytes_per_step === null ? '–' : Math.abs(row.bytes_per_step) < 0.5 ? '0 B' : formatBytesSigned(row.bytes_per_step)) },
    { key: 'peak_bytes', label: t('sites.peak'), track: track(92, 82), numeric: true, sortable: true, cell: (row) => formatBytes(row.peak_bytes) },
    { key: 'allocs', label: t('sites.blocks'), track: track(84, 86), numeric: true, sortable: true, cell: (row) => formatCount(row.allocs) },
    { key: 'alloc_bytes', label: t('sites.total'), track: track(104, 82), numeric: true, sortable: true, cell: (row) => formatBytes(row.alloc_bytes) },
    { key: 'lifetime_ns', label: t('sites.lifetime'), track: track(92, 80), numeric: true, sortable: true,
      cell: (row) => (row.lifetime_ns === null ? '–' : formatDuration(row.lifetime_ns)) },
  ];
}

async function allSites(query: Parameters): Promise<TableRecord[]> {
  const records: TableRecord[] = [];
  for (let total = 1; records.length < total; ) {
    const answer = await ask<Sites>('sites', { ...query, offset: records.length, limit: 1000 });
    if (answer.rows.length === 0) break;
    total = answer.total;
    for (const row of answer.rows) {
      const { place, function: name, text, file, line, owner, verdict } = row;
      const { live_bytes, live_blocks, peak_bytes, peak_time, allocs, alloc_bytes, bytes_per_step, lifetime_ns } = row;
      records.push({
        place, function: name, text, file, line, owner, verdict, live_bytes, live_blocks, peak_bytes, peak_time, allocs,
        alloc_bytes, bytes_per_step, lifetime_ns,
      });
    }
  }
  return records;
}

export function SitesPane() {
  const here = pool.value;
  const { sites: table, site } = view.value;
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  if (!here) return null;
  const sort = sortText(table.sort.slice(0, 1));
  const find = table.filters['place'] || null;
  const window = onlyWindow(table) ? timeWindow.value : null;
  const t0 = window ? Math.floor(window[0]) : null;
  const t1 = window ? Math.ceil(window[1]) : null;
  const narrow = width > 0 && width - (site === null ? 0 : kBeside) < kRoomy;
  const chosen = chosenRow.value?.site === site ? chosenRow.value : null;
  const beside = chosen ? Math.min(globalThis.innerWidth <= 1180 ? kBesideNarrow : kBeside, width * 0.45) : 0;
  return (
    <div class={narrow ? 'split narrow' : 'split'} ref={frame}>
      <Grid<SiteRow>
        label={t('tab.sites')}
        columns={columns(narrow, width > 0 ? width - beside : 9999)}
        rowHeight={narrow ? 42 : 26}
        rowsKey={[here.id, sort, find, t0, t1].join('|')}
        generation={edition.value}
        load={async (offset, limit) => {
          const answer = await ask<Sites>('sites', { pool: here.id, sort, find, offset, limit, t0, t1 });
          const known = answer.rows.find((row) => row.site === view.peek().site);
          if (known) chosenRow.value = known;
          return { total: answer.total, rows: answer.rows };
        }}
        table={table}
        onTable={(next) => patch({ sites: next })}
        idOf={(row) => row.site}
        selected={site}
        onOpen={(row) => {
          chosenRow.value = row;
          patch({ site: row.site === site ? null : row.site });
        }}
        bar={
          <>
            <WindowSwitch state={table} onChange={(next) => patch({ sites: next })} />
            <Downloads name="sites" records={() => allSites({ pool: here.id, sort, find, t0, t1 })} />
          </>
        }
        empty={<Empty title={t('sites.empty')} action={t('sites.empty.do')} />}
      />
      {chosen && (
        <aside class="beside" aria-label={t('sites.selected')}>
          <header>
            <b class="place">{shorten(chosen.place, 60)}</b>
            <span class="faint">{shorten(chosen.function, 60)}</span>
          </header>
          <div class="actions">
            <button type="button" onClick={() => patch({ tab: 'blocks', blocks: { sort: [], filters: { site_id: `=${chosen.site}` } } })}>
              {t('sites.to_blocks')}
            </button>
            <button type="button" onClick={() => patch({ order: 'site', colour: 'site', time: null, bytes: null })}>
              {t('sites.graph')}
            </button>
          </div>
          <SourceView file={chosen.file} line={chosen.line} around={8} />
        </aside>
      )}
    </div>
  );
}
