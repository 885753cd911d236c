// What memory is made of at an instant, or how it differs from another: icicle or treemap, by stack,
// owner, site, thread or size; search, click to zoom, a node → its blocks.

import { useEffect, useRef, useState } from 'preact/hooks';

import { ask } from '../api/client';
import type { Composition, CompositionNode } from '../api/types';
import { formatBytes, formatBytesSigned, formatCount, formatPercent } from '../format/bytes';
import { formatInstant, parseInstant } from '../format/time';
import { shorten } from '../format/path';
import { type Key, t } from '../i18n';
import { patch, pool, session, stepBounds, timeWindow, view } from '../state/store';
import { kGroups, kWeights, type Weight } from '../state/view_state';
import { Empty } from '../ui/empty';
import { Icon } from '../ui/icon';
import { classColour, cssColour, rampColour } from '../ui/palette';
import { Select } from '../ui/select';
import { theme, type Theme } from '../ui/theme';
import { accusedSites } from '../timeline/data';
import { kNoOwner, paletteSlots } from '../timeline/colours';
import { childrenOf, icicle, type Tile, treemapTiles } from './layout';

const kRow = 21;

export function amountText(value: number, weight: string, signed = false): string {
  if (weight === 'blocks' || weight === 'allocs') return `${signed && value > 0 ? '+' : ''}${formatCount(value)}`;
  if (weight === 'byte_time') return `${formatBytes(value)}·s`;
  return signed ? formatBytesSigned(value) : formatBytes(value);
}

function query(): Record<string, string | number | null> | null {
  const here = pool.value;
  if (!here) return null;
  const { at, against, by, weight } = view.value;
  const [t0, t1] = timeWindow.value;
  const flow = weight === 'allocs' || weight === 'alloc_bytes' || weight === 'byte_time';
  const instant = weight === 'live' || weight === 'blocks';
  return {
    pool: here.id, by, weight,
    t: instant ? (at === null ? 'peak' : at === -1 ? 'end' : at) : null,
    base: instant ? against : null,
    t0: flow ? Math.floor(t0) : null,
    t1: flow ? Math.ceil(t1) : null,
    limit: 4000,
  };
}

export function CompositionPane() {
  const asked = query();
  const key = JSON.stringify(asked) + String(session.value?.generation);
  const [data, setData] = useState<Composition | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    if (!asked) return undefined;
    const timer = setTimeout(() => {
      ask<Composition>('composition', asked).then(
        (answer) => {
          if (!current) return;
          setData(answer);
          setError(null);
        },
        (reason: unknown) => current && setError(reason instanceof Error ? reason.message : String(reason)),
      );
    }, 40);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key]);
  return (
    <div class="composition">
      <Controls data={data} />
      {error !== null && <p class="error">{error}</p>}
      {data && <Picture data={data} />}
    </div>
  );
}

function Controls({ data }: { data: Composition | null }) {
  const { by, weight, shape, at, against, search } = view.value;
  const instant = weight === 'live' || weight === 'blocks';
  const found = data && search !== '' ? matches(data.nodes, search) : null;
  return (
    <div class="toolbar">
      <div class="segmented" role="group">
        {(['icicle', 'treemap'] as const).map((name) => (
          <button key={name} type="button" aria-pressed={shape === name} onClick={() => patch({ shape: name })}>
            {t(`composition.shape.${name}` as Key)}
          </button>
        ))}
      </div>
      <Select label={t('compare.by')} value={by} options={kGroups.map((group) => [group, t(`composition.by.${group}` as Key)])}
        onChange={(group) => patch({ by: group, zoom: '' })} />
      <Select label={t('composition.weight')} value={weight} options={kWeights.map((name) => [name, t(`composition.weight.${name}` as Key)])}
        onChange={(name: Weight) => patch({ weight: name, zoom: '' })} />
      {instant && (
        <>
          <InstantField label={t('composition.at')} value={at} onChange={(next) => patch({ at: next })} />
          {against === null ? (
            <button type="button" class="text" onClick={() => patch({ against: Math.round(timeWindow.value[0]) })}>
              {t('composition.against.none')}
            </button>
          ) : (
            <>
              <InstantField label={t('composition.against')} value={against} onChange={(next) => patch({ against: next })} />
              <button type="button" class="icon" aria-label={t('app.close')} onClick={() => patch({ against: null })}><Icon name="close" /></button>
            </>
          )}
        </>
      )}
      <span class="space" />
      <input
        type="search" class="search" spellcheck={false} placeholder={t('composition.search')} aria-label={t('composition.search')}
        value={search} onInput={(event) => patch({ search: event.currentTarget.value })}
      />
      {found && data && <span class="faint">{t('composition.found', amountText(found.sum, weight), formatCount(found.indices.size))}</span>}
    </div>
  );
}

function InstantField({ label, value, onChange }: { label: string; value: number | null; onChange: (value: number | null) => void }) {
  const shown = value === null ? t('composition.peak') : value === -1 ? t('composition.end') : formatInstant(value, 1e5);
  const understand = (text: string): void => {
    const word = text.trim().toLowerCase();
    const step = /(\d+)/.exec(word);
    if (word === '' || word === 'peak' || word === t('composition.peak')) { onChange(null); return; }
    if (word === 'end' || word === t('composition.end')) { onChange(-1); return; }
    if (/step|#|步/.test(word) && step) { onChange(stepBounds(Number(step[1]))?.[1] ?? value); return; }
    const instant = parseInstant(word);
    if (instant !== null) onChange(instant);
  };
  return (
    <label class="instant">
      <span>{label}</span>
      <input type="text" spellcheck={false} value={shown} aria-label={label} title={t('timeline.goto')} list="instants"
        onChange={(event) => understand(event.currentTarget.value)} />
      <datalist id="instants">
        <option value={t('composition.peak')} />
        <option value={t('composition.end')} />
      </datalist>
    </label>
  );
}

export function matches(nodes: readonly CompositionNode[], search: string): { indices: Set<number>; sum: number } {
  const wanted = search.toLowerCase();
  const indices = new Set<number>();
  const within: boolean[] = [];
  let sum = 0;
  nodes.forEach((node, index) => {
    const inside = within[node.parent] ?? false;
    const hit = node.kind !== 'root' && `${node.name} ${node.detail ?? ''}`.toLowerCase().includes(wanted);
    if (hit) indices.add(index);
    // A match below another is part of it already.
    if (hit && !inside) sum += node.value;
    within[index] = inside || hit;
  });
  return { indices, sum };
}

function Picture({ data }: { data: Composition }) {
  const host = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setSize([element.clientWidth, element.clientHeight]));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const { zoom, search, shape, weight } = view.value;
  const difference = data.base !== null;
  const root = Math.max(data.nodes.findIndex((node) => String(node.id) === zoom), 0);
  const path: number[] = [];
  for (let index = root; index >= 0; index = data.nodes[index]?.parent ?? -1) path.unshift(index);
  const [width, height] = size;
  const tiles =
    width < 20 || data.nodes.length === 0 ? []
    : shape === 'icicle' ? icicle(data.nodes, root, width, kRow, difference, 1, search === '')
    : treemapTiles(data.nodes, root, width, Math.max(height, 60), difference);
  const slots = nodeSlots(data.nodes);
  const found = search === '' ? null : matches(data.nodes, search).indices;
  const deepest = tiles.reduce((most, tile) => Math.max(most, tile.y + tile.height), 0);
  const nothing = data.nodes.length === 0 || (data.total === 0 && !difference);
  const ownerless = data.by === 'owner' && pool.value?.owners === false;
  return (
    <>
      <nav class="crumbs">
        {path.map((index, i) => (
          <button key={index} type="button" class="text" disabled={i === path.length - 1} onClick={() => patch({ zoom: i === 0 ? '' : String(data.nodes[index]?.id) })}>
            {i === 0 ? `${t('word.total')} ${amountText(data.total, weight, difference)}` : shorten(data.nodes[index]?.name ?? '', 40)}
          </button>
        ))}
      </nav>
      {ownerless && <p class="note">{t('composition.owner.none')} {t('composition.owner.none.do')}</p>}
      {nothing && <Empty title={t('composition.empty')} action={t('composition.empty.do')} />}
      <div class="tiles" ref={host}>
        <div style={{ height: shape === 'icicle' ? `${deepest}px` : '100%', position: 'relative' }}>
          {tiles.slice(0, 3000).map((tile) => (
            <TileView key={data.nodes[tile.index]?.id ?? tile.index} tile={tile} slot={slots[tile.index] ?? 0} data={data} difference={difference} look={theme.value} found={found} shape={shape} />
          ))}
        </div>
      </div>
    </>
  );
}

/** A place on the palette for each node: its name's own, but none that a brother has already. */
function nodeSlots(nodes: readonly CompositionNode[]): number[] {
  const slots: number[] = nodes.map(() => 0);
  for (const brothers of childrenOf(nodes)) {
    const hues = brothers.map((index) => ({ hue: hash(nodes[index]?.name ?? '') % 360 }));
    paletteSlots(hues).forEach((slot, i) => (slots[brothers[i] ?? 0] = slot));
  }
  return slots;
}

function tileColour(node: CompositionNode, slot: number, difference: boolean, look: Theme): string {
  if (difference) {
    const old = node.base ?? 0;
    const share = Math.min(Math.abs(node.value) / Math.max(old, old + node.value, 1), 1);
    if (node.value === 0) return cssColour(classColour(0, look, 'other'));
    return node.value > 0 ? `color-mix(in oklab, var(--grown) ${25 + share * 75}%, var(--tile-rest))` : `color-mix(in oklab, var(--shrunk) ${25 + share * 75}%, var(--tile-rest))`;
  }
  if (node.kind === 'other' || node.kind === 'root') return cssColour(classColour(0, look, 'other'));
  if (isAccusedNode(node)) return cssColour(classColour(0, look, 'accused'));
  if (node.kind === 'frame' && !node.user) return 'var(--tile-library)';
  if (node.kind === 'class') return cssColour(rampColour((node.depth % 8) / 8, look));
  if (node.kind === 'owner' && node.name === kNoOwner) return cssColour(classColour(0, look, 'other'));
  return cssColour(classColour(slot, look));
}

// The very line that a verdict accuses.
function isAccusedNode(node: CompositionNode): boolean {
  if (node.site !== null && node.site !== 0) return accusedSites.value.has(node.site);
  const verdicts = session.value?.diagnosis?.verdicts ?? [];
  return node.file !== null && node.line !== null && verdicts.some(({ site }) => site !== null && site.file === node.file && site.line === node.line);
}

function hash(text: string): number {
  let value = 7;
  for (let i = 0; i < Math.min(text.length, 200); i += 1) value = (Math.imul(value, 31) + text.charCodeAt(i)) >>> 0;
  return value;
}

function TileView({ tile, slot, data, difference, look, found, shape }: {
  tile: Tile; slot: number; data: Composition; difference: boolean; look: Theme; found: Set<number> | null; shape: string;
}) {
  const node = data.nodes[tile.index];
  if (!node) return null;
  const { weight } = view.value;
  const whole = difference ? Math.max(Math.abs(data.total), 1) : Math.max(data.total, 1);
  const amount = amountText(node.value, weight, difference);
  const name = node.kind === 'root' ? t('word.total') : node.kind === 'other' ? t('word.other') : node.name === kNoOwner ? t('word.no_owner') : node.name;
  // "libc.so.6+0x10" says where it is already.
  const where = node.detail !== null && node.kind === 'frame' && !name.startsWith(`${node.detail}+`) ? `${name}  ${node.detail}` : name;
  const last = tile.folded ? data.nodes[tile.folded.last] : undefined;
  const label = tile.folded && last ? t('composition.folded', tile.folded.count, name, last.name) : where;
  const hint = [
    shorten(name, 200), node.detail === null ? '' : shorten(node.detail, 300), node.file === null ? '' : `${node.file}:${node.line ?? ''}`,
    `${amount} · ${formatPercent(node.value / whole)} · ${t('word.blocks', formatCount(node.blocks))}`,
    node.self !== 0 ? `${t('composition.self')}: ${amountText(node.self, weight, difference)}` : '',
    t('composition.hint'),
    difference && node.base !== null ? `${amountText(node.base, weight)} → ${amountText(node.base + node.value, weight)}` : '',
  ];
  const classes = ['tile', shape, found && !found.has(tile.index) ? 'dim' : '', found?.has(tile.index) ? 'found' : '', node.user ? 'user' : ''];
  return (
    <button
      type="button" class={classes.join(' ')} title={hint.filter(Boolean).join('\n')}
      style={{
        left: `${tile.x}px`, top: `${tile.y}px`, width: `${Math.max(tile.width - 1, 1)}px`, height: `${tile.height - 1}px`,
        background: tileColour(node, slot, difference, look),
      }}
      onClick={(event) => {
        if (event.altKey || event.ctrlKey) toBlocks(node);
        else patch({ zoom: tile.index === 0 ? '' : String((last ?? node).id) });
      }}
      onDblClick={() => toBlocks(node)}
    >
      {tile.width > 34 && tile.height > 13 && (
        <>
          <span>{shorten(label, 200)}</span>
          {tile.width > 110 && <b>{amount}</b>}
        </>
      )}
    </button>
  );
}

// A node → its blocks: by site, by part of the stack or by owner, whichever says it most exactly.
function toBlocks(node: CompositionNode): void {
  const filters: Record<string, string> =
    node.site !== null && node.site > 0 ? { site_id: `=${node.site}` }
    : node.kind === 'owner' ? { owner: node.name }
    : node.kind === 'frame' ? { stack: node.name.replace(/ .*$/, '') }
    : {};
  const { at } = view.value;
  if (at !== null && at >= 0) filters['alive'] = String(at);
  patch({ tab: 'blocks', blocks: { sort: [{ column: 'size', descending: true }], filters } });
}
