// A table of any length: rows come in pages as they are scrolled to; sort and filters are the
// server's work. Keyboard: arrows, Page, Home, End; Enter opens.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { formatCount } from '../format/bytes';
import { plural, t } from '../i18n';
import type { TableState } from '../state/view_state';
import { Empty } from '../ui/empty';
import { Icon } from '../ui/icon';
import { nextSort } from './filters';
import { isScaled, lastTop, pagesOf, rowAtScroll, scrollAtRow, scrollHeight } from './virtual_rows';

export interface GridColumn<Row> {
  key: string;
  label: string;
  /** A CSS grid track: "90px", "minmax(120px, 2fr)". */
  track: string;
  numeric?: boolean;
  sortable?: boolean;
  /** Placeholder of the filter field; none: no filter. */
  filter?: string;
  cell: (row: Row) => ComponentChildren;
}

interface GridProps<Row> {
  label: string;
  columns: readonly GridColumn<Row>[];
  /** Changes whenever other rows are meant. */
  rowsKey: string;
  /** Changes when the same rows may read differently: a run that is still being written. */
  generation: string;
  load: (offset: number, limit: number) => Promise<{ total: number; rows: Row[] }>;
  table: TableState;
  onTable: (table: TableState) => void;
  wrong?: readonly string[];
  idOf: (row: Row) => number;
  selected: number | null;
  onOpen: (row: Row) => void;
  rowHeight?: number;
  /** Beside the number of rows: exports, switches. */
  bar?: ComponentChildren;
  empty?: ComponentChildren;
  /** A row to bring into view. */
  reveal?: number | null;
}

const kPage = 200;

export function Grid<Row>(props: GridProps<Row>) {
  const { columns, load, rowsKey, table, onTable, idOf, selected, onOpen, rowHeight = 26 } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const pages = useRef(new Map<number, Row[] | 'asked'>());
  const before = useRef(new Map<number, Row[] | 'asked'>());
  const [total, setTotal] = useState<number | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [top, setTop] = useState(0);
  const [viewport, setViewport] = useState(300);
  const [active, setActive] = useState<number | null>(null);
  const [, redraw] = useState(0);
  const key = useRef('');
  const set = useRef(-1);

  const count = total ?? 0;
  const fetchPage = (page: number): void => {
    if (pages.current.has(page)) return;
    pages.current.set(page, 'asked');
    const asked = key.current;
    load(page * kPage, kPage).then(
      (answer) => {
        if (asked !== key.current) return;
        pages.current.set(page, answer.rows);
        setTotal(answer.total);
        setError(null);
        redraw((n) => n + 1);
      },
      (reason: unknown) => {
        if (asked !== key.current) return;
        pages.current.delete(page);
        setError(reason instanceof Error ? reason.message : String(reason));
      },
    );
  };

  useEffect(() => {
    key.current = `${rowsKey}|${props.generation}`;
    pages.current = new Map();
    before.current = new Map();
    setActive(null);
    scrollTo(0, 0);
    fetchPage(0);
  }, [rowsKey]);

  // The same rows anew: they stay on screen, where they are, until the answer is there.
  useEffect(() => {
    const now = `${rowsKey}|${props.generation}`;
    if (key.current === now) return;
    key.current = now;
    before.current = pages.current;
    pages.current = new Map();
    fetchPage(Math.floor(top / kPage));
  }, [props.generation]);

  useEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setViewport(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const fit = viewport / rowHeight;
  useEffect(() => {
    if (total === null) return;
    for (const page of pagesOf({ top, fit }, total, kPage)) fetchPage(page);
  });

  const scrollTo = (row: number, ofTotal = count): void => {
    const clamped = Math.min(Math.max(row, 0), lastTop(ofTotal, rowHeight, viewport));
    setTop(clamped);
    const element = scroller.current;
    if (!element) return;
    set.current = Math.round(scrollAtRow(clamped, ofTotal, rowHeight, viewport));
    element.scrollTop = set.current;
  };

  useEffect(() => {
    const reveal = props.reveal;
    if (reveal === null || reveal === undefined || total === null) return;
    if (reveal < top || reveal > top + fit - 1) scrollTo(reveal - fit / 2);
    setActive(reveal);
  }, [props.reveal, total]);

  const onScroll = (event: Event): void => {
    const element = event.currentTarget as HTMLElement;
    if (Math.abs(element.scrollTop - set.current) < 1) return;
    set.current = -1;
    setTop(rowAtScroll(element.scrollTop, count, rowHeight, viewport));
  };

  // On a scaled bar a wheel's pixels would be thousands of rows: there they move rows instead.
  useEffect(() => {
    const element = scroller.current;
    if (!element || !isScaled(count, rowHeight)) return undefined;
    const onWheel = (event: WheelEvent): void => {
      event.preventDefault();
      scrollTo(top + event.deltaY / rowHeight);
    };
    element.addEventListener('wheel', onWheel, { passive: false });
    return () => element.removeEventListener('wheel', onWheel);
  });

  const rowAt = (index: number): Row | null => {
    const number = Math.floor(index / kPage);
    const page = pages.current.get(number);
    const shown = page && page !== 'asked' ? page : before.current.get(number);
    return shown && shown !== 'asked' ? (shown[index % kPage] ?? null) : null;
  };

  const onKey = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = {
      ArrowDown: 1, ArrowUp: -1, PageDown: Math.floor(fit) - 1, PageUp: 1 - Math.floor(fit), Home: -count, End: count,
    };
    const by = moves[event.key];
    if (event.key === 'Enter' && active !== null) {
      const row = rowAt(active);
      if (row) onOpen(row);
      return;
    }
    if (by === undefined || count === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.min(Math.max((active ?? Math.ceil(top) - (by > 0 ? 1 : 0)) + by, 0), count - 1);
    setActive(next);
    if (next < top) scrollTo(next);
    else if (next > top + fit - 1) scrollTo(next - fit + 1);
  };

  const tracks = columns.map((column) => column.track).join(' ');
  const first = Math.max(0, Math.floor(top) - 3);
  const last = Math.min(count, Math.ceil(top + fit) + 3);
  const offset = (top - first) * rowHeight;
  const indices = Array.from({ length: Math.max(last - first, 0) }, (_unused, i) => first + i);
  const hasFilters = columns.some((column) => column.filter !== undefined);
  const filtered = Object.values(table.filters).some((text) => text !== '');
  return (
    <div class="grid">
      <div class="grid-bar">
        <span class="count" aria-live="polite">
          {total === null ? '' : plural(total, 'table.row', 'table.rows', formatCount(total))}
        </span>
        {filtered && (
          <button type="button" class="text" onClick={() => onTable({ ...table, filters: {} })}>{t('table.clear')}</button>
        )}
        {error !== null && <span class="error">{error}</span>}
        <span class="space" />
        {props.bar}
      </div>
      <div class="grid-wide">
        <div class="grid-head" style={{ gridTemplateColumns: tracks }} role="row">
          {columns.map((column) => (
            <Head key={column.key} column={column} table={table} onTable={onTable} />
          ))}
        </div>
        {hasFilters && (
          <div class="grid-filters" style={{ gridTemplateColumns: tracks }}>
            {columns.map((column) =>
              column.filter === undefined ? <span key={column.key} /> : (
                <FilterField
                  key={column.key} label={t('table.filter', column.label)} placeholder={column.filter}
                  value={table.filters[column.key] ?? ''} wrong={props.wrong?.includes(column.key) ?? false}
                  onChange={(text) => onTable({ ...table, filters: { ...table.filters, [column.key]: text } })}
                />
              ),
            )}
          </div>
        )}
        <div
          class="grid-rows" ref={scroller} role="grid" aria-label={props.label} aria-rowcount={count} tabIndex={0}
          onScroll={onScroll} onKeyDown={onKey}
        >
          {total === 0 && (props.empty ?? <Empty title={t('table.empty')} action={filtered ? t('table.empty.filters') : ''} />)}
          <div style={{ height: `${scrollHeight(count, rowHeight)}px` }}>
            <div class="grid-window" style={{ transform: `translateY(${-offset}px)` }}>
              {indices.map((index) => {
                const row = rowAt(index);
                const id = row ? idOf(row) : null;
                const chosen = id !== null && id === selected;
                return (
                  <div
                    key={index} role="row" aria-rowindex={index + 1} aria-selected={chosen}
                    class={`grid-row${chosen ? ' chosen' : ''}${index === active ? ' active' : ''}`}
                    style={{ gridTemplateColumns: tracks, height: `${rowHeight}px` }}
                    onClick={() => {
                      setActive(index);
                      if (row) onOpen(row);
                    }}
                  >
                    {columns.map((column) => (
                      <div key={column.key} role="gridcell" class={column.numeric ? 'cell number' : 'cell'}>
                        {row ? column.cell(row) : '·'}
                      </div>
                    ))}
                  </div>
                );
              })}
            </div>
          </div>
        </div>
      </div>
    </div>
  );
}

function Head<Row>({ column, table, onTable }: {
  column: GridColumn<Row>; table: TableState; onTable: (table: TableState) => void;
}) {
  const place = table.sort.findIndex((key) => key.column === column.key);
  const sorted = table.sort[place];
  const order = sorted ? (sorted.descending ? 'descending' : 'ascending') : 'none';
  const style = column.numeric ? 'head number' : 'head';
  if (!column.sortable) return <div role="columnheader" class={style}>{column.label}</div>;
  return (
    <div role="columnheader" aria-sort={order} class={style}>
      <button
        type="button" title={t('table.sort.hint')}
        onClick={(event) => onTable({ ...table, sort: nextSort(table.sort, column.key, event.shiftKey, column.numeric ?? false) })}
      >
        <span>{column.label}</span>
        {sorted && <Icon name={sorted.descending ? 'down' : 'up'} />}
        {sorted && table.sort.length > 1 && <sup>{place + 1}</sup>}
      </button>
    </div>
  );
}

// What is typed takes effect a moment later; Enter at once.
function FilterField({ label, placeholder, value, wrong, onChange }: {
  label: string; placeholder: string; value: string; wrong: boolean; onChange: (text: string) => void;
}) {
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const later = (text: string, delay: number): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange(text), delay);
  };
  return (
    <input
      type="text" spellcheck={false} aria-label={label} placeholder={placeholder} value={value} aria-invalid={wrong}
      title={wrong ? t('table.filter.bad', value) : `${label}: ${placeholder}`}
      onInput={(event) => later(event.currentTarget.value, 300)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === 'Enter') later(event.currentTarget.value, 0);
      }}
    />
  );
}
