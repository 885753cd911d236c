// Which memory is shown: every layer of every device with its size, one alone or several as panes
// one above the other. What was never used is not offered.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

import type { Pool } from '../api/types';
import { formatBytes } from '../format/bytes';
import { shorten } from '../format/path';
import { t } from '../i18n';
import { focusPool, isUsed, patch, pool, session, showOnly, shownPools, togglePane } from '../state/store';
import { nested } from '../state/nesting';
import { kMostPanes } from '../state/view_state';

export const chooserOpen = signal(false);

export function MemoryChooser() {
  const here = pool.value;
  const root = useRef<HTMLDivElement>(null);
  const open = chooserOpen.value;
  useEffect(() => {
    if (!open) return undefined;
    const outside = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) chooserOpen.value = false;
    };
    document.addEventListener('pointerdown', outside);
    root.current?.querySelector<HTMLElement>('.memory-panel input')?.focus();
    return () => document.removeEventListener('pointerdown', outside);
  }, [open]);
  if (!here) return null;
  const more = shownPools.value.length - 1;
  return (
    <div
      class="memory" ref={root}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !open) return;
        event.stopPropagation();
        chooserOpen.value = false;
        root.current?.querySelector('button')?.focus();
      }}
    >
      <button type="button" class="memory-button" aria-haspopup="dialog" aria-expanded={open} title={t('memory.choose')} onClick={() => (chooserOpen.value = !open)}>
        {here.name} · {formatBytes(here.peak.bytes)}
        {more > 0 && <span class="faint">{t('memory.more', more)}</span>}
        <i aria-hidden="true" class="caret" />
      </button>
      {open && <Panel />}
    </div>
  );
}

function Panel() {
  const pools = (session.value?.pools ?? []).filter(isUsed);
  const inputs = (session.value?.inputs ?? []).filter((entry) => pools.some((candidate) => candidate.input === entry.id));
  const most = Math.max(...pools.map((candidate) => candidate.peak.bytes), 1);
  const shown = shownPools.value;
  const rows = inputs.map((entry) => ({ entry, rows: nested(pools.filter((candidate) => candidate.input === entry.id)) }));
  const deep = rows.some((group) => group.rows.some((row) => row.outer !== null));
  return (
    <div class="memory-panel" role="dialog" aria-label={t('memory.choose')}>
      <table>
        <thead>
          <tr><th /><th /><th class="number">{t('memory.peak')}</th><th class="number">{t('memory.end')}</th><th /></tr>
        </thead>
        {rows.map((group) => (
          <tbody key={group.entry.id}>
            {inputs.length > 1 && <tr><th colSpan={5} class="process">{processName(group.entry.id)}</th></tr>}
            {group.rows.map((row) => (
              <Line key={row.pool.id} {...row} most={most} shown={shown.includes(row.pool)} full={shown.length >= kMostPanes} />
            ))}
          </tbody>
        ))}
      </table>
      <footer>
        {deep && <span class="faint">{t('memory.nested')}</span>}
        <span class="space" />
        {shown.length > 1 && pool.value && (
          <button type="button" class="text" onClick={() => pool.value && showOnly(pool.value.id)}>{t('memory.one', pool.value.name)}</button>
        )}
        {pools.length > 1 && pools.length <= kMostPanes && shown.length < pools.length && (
          <button type="button" class="text" onClick={() => patch({ panes: pools.map((candidate) => candidate.id) })}>{t('memory.all')}</button>
        )}
      </footer>
    </div>
  );
}

function processName(id: number): string {
  const entry = session.value?.inputs.find((candidate) => candidate.id === id);
  const rank = entry?.process?.rank;
  return [rank === null || rank === undefined ? '' : t('word.rank', rank), shorten(entry?.name ?? '', 50)].filter(Boolean).join(' · ');
}

function Line({ pool: entry, depth, outer, most, shown, full }: {
  pool: Pool; depth: number; outer: Pool | null; most: number; shown: boolean; full: boolean;
}) {
  const focus = entry.id === pool.value?.id;
  const label = t(shown ? 'memory.hide' : 'memory.add', entry.name);
  return (
    <tr class={focus ? 'chosen' : ''}>
      <td>
        <input type="checkbox" checked={shown} disabled={!shown && full} aria-label={label} title={label} onChange={() => togglePane(entry.id)} />
      </td>
      <td style={{ paddingLeft: `${6 + depth * 16}px` }}>
        <button
          type="button" class="text" title={t('memory.only', entry.name)}
          onClick={() => {
            if (shown) focusPool(entry.id);
            else showOnly(entry.id);
            chooserOpen.value = false;
          }}
        >
          {entry.name}
        </button>
        {entry.accused.length > 0 && <i class="dot" title={t('memory.accused')} />}
        {outer && <span class="faint">{t('memory.within', outer.name)}</span>}
      </td>
      <td class="number">{formatBytes(entry.peak.bytes)}</td>
      <td class="number">{formatBytes(entry.live_bytes)}</td>
      <td class="bar"><i style={{ width: `${Math.max((entry.peak.bytes / most) * 100, 1)}%` }} /></td>
    </tr>
  );
}
