// Every key of the page in one place, and the list of them.

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

import { t } from '../i18n';
import { bytesWindow, focusPool, jumpTo, moveTo, patch, pool, selectBlock, session, showVerdict, shownPools, timeWindow, travel, view, wholeBytes, wholeTime } from '../state/store';
import { kColours, kOrders, kTabs } from '../state/view_state';
import { goToPeak, stepBy, zoomBy } from '../timeline/toolbar';
import { hovered } from '../timeline/hover';
import { panRange } from '../timeline/viewport';
import { Icon } from './icon';
import { chooserOpen } from './memory_chooser';

export const keysOpen = signal(false);

function pan(time: number, bytes: number): void {
  const [t0, t1] = timeWindow.value;
  const [m0, m1] = bytesWindow.value;
  moveTo(
    view.value.time === null ? null : panRange([t0, t1], time * (t1 - t0), wholeTime.value),
    view.value.bytes === null ? null : panRange([m0, m1], bytes * (m1 - m0), wholeBytes.value),
  );
}

function cycle<T>(values: readonly T[], now: T): T {
  return values[(values.indexOf(now) + 1) % values.length] ?? now;
}

const kActions: Record<string, (event: KeyboardEvent) => void> = {
  ArrowLeft: () => pan(-0.15, 0),
  ArrowRight: () => pan(0.15, 0),
  ArrowUp: () => pan(0, 0.15),
  ArrowDown: () => pan(0, -0.15),
  a: () => pan(-0.15, 0),
  d: () => pan(0.15, 0),
  w: () => zoomBy(0.7, 'time'),
  s: () => zoomBy(1 / 0.7, 'time'),
  '+': (event) => zoomBy(0.7, event.altKey ? 'bytes' : 'time'),
  '=': (event) => zoomBy(0.7, event.altKey ? 'bytes' : 'time'),
  '-': (event) => zoomBy(1 / 0.7, event.altKey ? 'bytes' : 'time'),
  W: () => zoomBy(0.7, 'bytes'),
  S: () => zoomBy(1 / 0.7, 'bytes'),
  '0': () => jumpTo(null, null),
  r: () => jumpTo(null, null),
  Backspace: (event) => travel(event.shiftKey ? 'forward' : 'back'),
  p: goToPeak,
  g: () => document.getElementById('goto')?.focus(),
  '[': () => stepBy(-1),
  ']': () => stepBy(1),
  o: () => patch({ order: cycle(kOrders, view.value.order) }),
  c: () => patch({ colour: cycle(kColours, view.value.colour), hidden: [] }),
  f: () => patch({ sample: view.value.sample === 'peak' ? 'floor' : 'peak' }),
  m: () => (chooserOpen.value = !chooserOpen.value),
  n: () => {
    const shown = shownPools.value;
    const here = pool.value;
    if (here) focusPool(cycle(shown, here).id);
  },
  t: () => patch({ tab: cycle(kTabs, view.value.tab) }),
  '?': () => (keysOpen.value = !keysOpen.value),
  Enter: () => {
    const over = hovered.value;
    const block = over?.hit?.block;
    if (!over || block === null || block === undefined) return;
    focusPool(over.pool);
    selectBlock(block);
  },
  Escape: () => {
    if (keysOpen.value) keysOpen.value = false;
    else if (view.value.block !== null || view.value.pins.length > 0) patch({ block: null, pins: [] });
    else patch({ verdict: null, site: null });
  },
};

export function followKeyboard(): void {
  window.addEventListener('keydown', (event) => {
    const target = event.target as HTMLElement;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) {
      if (event.key === 'Escape') target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (event.key === 'Enter' && target.tagName === 'BUTTON') return;
    if (/^[1-9]$/.test(event.key)) {
      const verdict = session.value?.diagnosis?.verdicts[Number(event.key) - 1];
      if (verdict) void showVerdict(verdict);
      return;
    }
    const action = kActions[event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}

export function KeysDialog() {
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => close.current?.focus(), [keysOpen.value]);
  if (!keysOpen.value) return null;
  const rows: [string, string][] = [
    ['+ −', t('keys.zoom')], ['Shift W S', t('keys.zoom.bytes')], ['← → ↑ ↓', t('keys.pan')], ['0', t('keys.reset')],
    ['⌫  Shift ⌫', t('keys.back')], ['p', t('keys.peak')], ['g', t('keys.goto')], ['[ ]', t('keys.steps')], ['1 … 9', t('keys.verdict')],
    ['Enter', t('keys.block')], ['o  c  f', t('keys.order')], ['m', t('memory.choose')], ['n', t('keys.pane')], ['t', t('keys.tabs')], ['Esc', t('keys.close')],
    [t('keys.mouse.wheel'), t('keys.wheel')], [t('keys.mouse.drag'), t('keys.move')], [t('keys.mouse.box'), t('keys.box')],
    [t('keys.mouse.double'), t('keys.dblclick')], ['?', t('keys.help')],
  ];
  return (
    <div class="dialog-back" onClick={() => (keysOpen.value = false)}>
      <div class="dialog" role="dialog" aria-modal="true" aria-label={t('keys.title')} onClick={(event) => event.stopPropagation()}>
        <header>
          <b>{t('keys.title')}</b>
          <span class="space" />
          <button ref={close} type="button" class="icon" aria-label={t('app.close')} onClick={() => (keysOpen.value = false)}><Icon name="close" /></button>
        </header>
        <dl>
          {rows.map(([keys, text]) => (
            <div key={keys}>
              <dt><kbd>{keys}</kbd></dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      </div>
    </div>
  );
}
