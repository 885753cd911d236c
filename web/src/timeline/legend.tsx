// The legend of the block graph. A click switches a class off or on, a double click shows it alone;
// the blocks of what is off are not stacked.

import type { Legend, LegendClass } from '../api/types';
import { formatBytes } from '../format/bytes';
import { shorten } from '../format/path';
import { t } from '../i18n';
import { patch, view } from '../state/store';
import { cssColour } from '../ui/palette';
import { type Theme, theme } from '../ui/theme';
import { fade, isAccused, kNoLine, kNoOwner, legendColours, pixelColours } from './colours';
import { accusedSites, legend } from './data';

/** The ids that are on, for the server; null when all are. */
export function classList(known: Legend, hidden: readonly number[]): string | null {
  if (hidden.length === 0) return null;
  return known.classes.filter((entry) => !hidden.includes(entry.id)).map((entry) => entry.id).join(',');
}

export function graphColours(
  known: Legend, accused: ReadonlyMap<number, number>, site: number | null, look: Theme,
): Uint32Array {
  const colours = legendColours(known.colour, known.classes, new Set(accused.keys()), look);
  const chosen = site !== null && known.colour === 'site' && known.classes.some((entry) => entry.key['site'] === site);
  const shown = colours.map((rgb, index) =>
    chosen && known.classes[index]?.key['site'] !== site ? fade(rgb, look, 0.62) : rgb,
  );
  return pixelColours(known.classes, shown);
}

/** What a class is called on the page: ordered classes come as numbers, the rest as names. */
export function className(entry: LegendClass): string {
  if (entry.name === kNoOwner) return t('word.no_owner');
  if (entry.name === kNoLine) return t('word.native');
  return entry.id === 0 && (entry.name === 'other' || entry.name === '') ? t('word.other') : entry.name;
}

function toggle(entry: LegendClass): void {
  const { hidden } = view.value;
  patch({ hidden: hidden.includes(entry.id) ? hidden.filter((id) => id !== entry.id) : [...hidden, entry.id] });
}

function alone(entry: LegendClass, known: Legend): void {
  const others = known.classes.map((candidate) => candidate.id).filter((id) => id !== entry.id);
  const already = others.every((id) => view.value.hidden.includes(id));
  patch({ hidden: already ? [] : others });
}

export function LegendBar() {
  const known = legend.value;
  if (!known) return <div class="legend" />;
  const accused = new Set(accusedSites.value.keys());
  const colours = legendColours(known.colour, known.classes, accused, theme.value);
  const { hidden } = view.value;
  return (
    <div class="legend" role="group" aria-label={t('timeline.legend')} title={t('timeline.legend')}>
      {hidden.length > 0 && (
        <button type="button" class="chip all" onClick={() => patch({ hidden: [] })}>
          {t('timeline.legend.all')}
        </button>
      )}
      {known.classes.map((entry, index) => {
        if (entry.blocks === 0) return null;
        const name = className(entry);
        const off = hidden.includes(entry.id);
        const state = ['chip', off ? 'off' : '', isAccused(entry, accused) ? 'accused' : ''].join(' ');
        const hint = [entry.name, entry.detail, `${formatBytes(entry.bytes)} · ${t('timeline.peak')} ${formatBytes(entry.peak)}`];
        return (
          <button
            key={entry.id} type="button" class={state} aria-pressed={!off} title={hint.filter(Boolean).join('\n')}
            onClick={() => toggle(entry)} onDblClick={() => alone(entry, known)}
          >
            <i style={{ background: cssColour(colours[index] ?? [150, 150, 150]) }} />
            <span>{shorten(name, 34)}</span>
            <b>{formatBytes(entry.peak)}</b>
          </button>
        );
      })}
    </div>
  );
}
