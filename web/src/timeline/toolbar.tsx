// What can be chosen about the timeline, and where to go in it.

import { signal } from '@preact/signals';
import { useRef } from 'preact/hooks';

import { ask } from '../api/client';
import { parseInstant } from '../format/time';
import { type Key, t } from '../i18n';
import {
  history, jumpTo, kShortestTime, patch, pool, stepBounds, timeWindow, travel, view, wholeTime, bytesWindow, wholeBytes,
  kShortestBytes, moveTo, steps,
} from '../state/store';
import { kColours, kOrders } from '../state/view_state';
import { Icon } from '../ui/icon';
import { Select } from '../ui/select';
import { lanes, lineData } from './data';
import { frameRange, type Range, zoomRange } from './viewport';
import { cssVariable } from '../ui/css';
import { theme } from '../ui/theme';
import { lineLook } from './look';

/** A plain drag draws a box instead of moving. */
export const boxMode = signal(false);
const wrong = signal(false);

export function zoomBy(factor: number, direction: 'time' | 'bytes'): void {
  const middle = (range: Range): number => (range[0] + range[1]) / 2;
  if (direction === 'time') {
    const range = timeWindow.value;
    moveTo(zoomRange(range, middle(range), factor, wholeTime.value, kShortestTime), view.value.bytes);
  } else {
    const range = bytesWindow.value;
    moveTo(view.value.time, zoomRange(range, range[0], factor, wholeBytes.value, kShortestBytes));
  }
}

export function goToPeak(): void {
  const here = pool.value;
  if (!here) return;
  const length = Math.min((timeWindow.value[1] - timeWindow.value[0]) / 8, (wholeTime.value[1] - wholeTime.value[0]) / 20);
  jumpTo(frameRange([here.peak.time, here.peak.time], 0.5, wholeTime.value, Math.max(length, kShortestTime)), null);
  patch({ at: null });
}

export function goToStep(k: number): boolean {
  const bounds = stepBounds(k);
  if (!bounds) return false;
  jumpTo(frameRange(bounds, 0.1, wholeTime.value, kShortestTime), null);
  return true;
}

/** The step before or after the one in the middle of the window. */
export function stepBy(direction: 1 | -1): void {
  const known = steps.value;
  if (!known || known.ends.length === 0) return;
  const middle = (timeWindow.value[0] + timeWindow.value[1]) / 2;
  const index = known.ends.findIndex((end) => end >= middle);
  const here = index < 0 ? known.ends.length : index;
  goToStep(Math.min(Math.max(here + direction, 0), known.ends.length - 1) + known.first_number);
}

function goToOom(): void {
  const middle = (timeWindow.value[0] + timeWindow.value[1]) / 2;
  const ooms = lanes.value?.ooms ?? [];
  const next = ooms.find((oom) => oom.time > middle + 1) ?? ooms[0];
  if (next) jumpTo(frameRange([next.time, next.time], 0.5, wholeTime.value, (wholeTime.value[1] - wholeTime.value[0]) / 50), null);
}

/** "step 12", "#12", "peak", "1.5 s": what the go-to field understands. */
export async function goTo(text: string): Promise<boolean> {
  const word = text.trim().toLowerCase();
  if (word === '') return true;
  if (word === 'peak' || word === '峰值') {
    goToPeak();
    return true;
  }
  const step = /^(?:step|#|步|第)\s*(\d+)\s*步?$/.exec(word);
  if (step) return goToStep(Number(step[1]));
  const instant = parseInstant(word);
  if (instant !== null) {
    const whole = wholeTime.value;
    if (instant < whole[0] || instant > whole[1]) return false;
    const length = Math.min(timeWindow.value[1] - timeWindow.value[0], (whole[1] - whole[0]) / 10);
    jumpTo(frameRange([instant, instant], 0.5, whole, Math.max(length, kShortestTime)), null);
    return true;
  }
  return goToName(text);
}

async function goToName(text: string): Promise<boolean> {
  const found = await ask<{ results: { kind: string; block: number | null; site: number | null; time: number | null }[] }>(
    'search', { q: text, pool: pool.value?.id },
  ).catch(() => ({ results: [] }));
  const first = found.results.find((result) => result.block !== null || result.site !== null || result.time !== null);
  if (!first) return false;
  if (first.block !== null) patch({ block: first.block });
  else if (first.site !== null) patch({ site: first.site, tab: 'sites' });
  else if (first.time !== null) {
    jumpTo(frameRange([first.time, first.time], 0.5, wholeTime.value, (wholeTime.value[1] - wholeTime.value[0]) / 20), null);
  }
  return true;
}

export function Toolbar() {
  const goto = useRef<HTMLInputElement>(null);
  void view.value;
  const past = history.value;
  const now = view.value;
  const submit = (event: Event): void => {
    event.preventDefault();
    const field = goto.current;
    if (!field) return;
    void goTo(field.value).then((understood) => {
      wrong.value = !understood;
      if (understood) field.blur();
    });
  };
  return (
    <div class="toolbar" role="toolbar" aria-label={t('timeline.title')}>
      <Select
        label={t('timeline.order')} value={now.order} title={t('timeline.order.lifetime.hint')}
        options={kOrders.map((order) => [order, t(`timeline.order.${order}` as Key)])}
        onChange={(order) => patch({ order })}
      />
      <Select
        label={t('timeline.colour')} value={now.colour}
        options={kColours.map((colour) => [colour, t(`timeline.colour.${colour}` as Key)])}
        onChange={(colour) => patch({ colour, hidden: [] })}
      />
      <Select
        label={t('timeline.sample')} value={now.sample} title={t('timeline.sample.hint')}
        options={[['peak', t('timeline.sample.peak')], ['floor', t('timeline.sample.floor')]]}
        onChange={(sample) => patch({ sample })}
      />
      <label class="check" title={t('timeline.tidy.hint')}>
        <input type="checkbox" checked={now.tidy} onChange={() => patch({ tidy: !now.tidy })} />
        {t('timeline.tidy')}
      </label>
      <Lines />
      <span class="space" />
      <form class="goto" onSubmit={submit}>
        <input
          ref={goto} id="goto" type="text" spellcheck={false} placeholder={t('timeline.goto')} aria-label={t('timeline.goto.label')}
          aria-invalid={wrong.value} title={wrong.value ? t('timeline.goto.bad') : t('timeline.goto')}
          onInput={() => (wrong.value = false)}
        />
      </form>
      <div class="buttons">
        {(lanes.value?.ooms.length ?? 0) > 0 && <Button icon="alert" label={t('timeline.oom')} onClick={goToOom} />}
        <Button icon="peak" label={t('timeline.peak')} onClick={goToPeak} />
        <Button icon="box" label={t('timeline.box')} pressed={boxMode.value} onClick={() => (boxMode.value = !boxMode.value)} />
        <Button icon="minus" label={t('timeline.out')} onClick={() => zoomBy(2, 'time')} />
        <Button icon="plus" label={t('timeline.in')} onClick={() => zoomBy(0.5, 'time')} />
        <Button icon="back" label={t('timeline.back')} disabled={!past.canGoBack} onClick={() => travel('back')} />
        <Button icon="forward" label={t('timeline.forward')} disabled={!past.canGoForward} onClick={() => travel('forward')} />
        <Button icon="fit" label={t('timeline.reset')} disabled={!now.time && !now.bytes} onClick={() => jumpTo(null, null)} />
      </div>
    </div>
  );
}

// Which line is which: the lines' own legend.
function Lines() {
  const data = lineData.value;
  void theme.value;
  if (!data) return null;
  const keys = [...data.series.map((series) => series.key).filter((key) => lineLook(key).over), 'floor'];
  return (
    <span class="line-keys">
      {keys.map((key) => {
        const { style } = lineLook(key);
        return (
          <span key={key}>
            <i style={{ borderTop: `2px ${style.dash ? 'dashed' : 'solid'} ${style.stroke || cssVariable('--ink')}` }} />
            {style.label}
          </span>
        );
      })}
    </span>
  );
}

interface ButtonProps {
  icon: string;
  label: string;
  onClick: () => void;
  disabled?: boolean;
  pressed?: boolean;
}

function Button({ icon, label, onClick, disabled = false, pressed = false }: ButtonProps) {
  return (
    <button type="button" class="icon" title={label} aria-label={label} disabled={disabled} aria-pressed={pressed} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}
