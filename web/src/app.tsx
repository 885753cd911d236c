// The page: verdicts, timeline, and below it the tabs with the detail of the chosen block beside.

import { signal } from '@preact/signals';

import { kDictionaries, type Key, readSetting, t, writeSetting } from './i18n';
import { ComparePane } from './panes/compare';
import { CompositionPane } from './panes/composition';
import { DetailPanel } from './panes/detail';
import { PoolPane } from './panes/pool';
import { RowsPane } from './panes/rows';
import { SitesPane } from './panes/sites';
import { VerdictBar } from './panes/verdicts';
import { failure, input, patch, reportFacts, session, shownPools, status, toast, view } from './state/store';
import { kTabs, type Tab } from './state/view_state';
import { Timeline } from './timeline/timeline';
import { formatCount, formatPercent } from './format/bytes';
import { Empty } from './ui/empty';
import { Header } from './ui/header';
import { KeysDialog } from './ui/keyboard';

const kLeast = 240;
const stored = Number(readSetting('timeline.height'));
const timelineHeight = signal(stored >= kLeast ? stored : 0);

function heightOfTimeline(): number {
  const height = globalThis.innerHeight;
  const most = Math.max(height - 310, kLeast);
  // On a low screen the tables would be left with a few rows: there they have what the rest leaves.
  // Each pane more is a little more height.
  const panes = shownPools.value.length - 1;
  const wanted = Math.min(Math.round(height * 0.46), Math.max(height - 490, kLeast)) + panes * 110;
  return Math.min(Math.max(timelineHeight.value || wanted, kLeast), most);
}

export function App() {
  return (
    <>
      <Header />
      {failure.value !== null && !session.value ? <Failure /> : !session.value ? <Loading /> : <Opened />}
      <KeysDialog />
      {toast.value !== null && <div class="toast" role="status">{toast.value}</div>}
    </>
  );
}

function Failure() {
  return (
    <main class="centre">
      <Empty title={status.value?.error ?? t('app.failed')} action={status.value?.error ? '' : t('app.failed.do')} />
      <button type="button" onClick={() => globalThis.location.reload()}>{t('app.retry')}</button>
    </main>
  );
}

function Loading() {
  const progress = status.value?.progress ?? null;
  return (
    <main class="centre" aria-busy="true">
      <p>{t('app.indexing', progress === null ? '…' : formatPercent(progress))}</p>
      <progress {...(progress === null ? {} : { value: progress })} />
    </main>
  );
}

function Opened() {
  const { tab } = view.value;
  return (
    <main>
      <VerdictBar />
      <Notices />
      <Timeline height={heightOfTimeline()} />
      <div
        class="splitter" role="separator" aria-orientation="horizontal" aria-label={t('app.resize')} tabIndex={0}
        onPointerDown={resize}
        onKeyDown={(event) => {
          const by = event.key === 'ArrowUp' ? -24 : event.key === 'ArrowDown' ? 24 : 0;
          if (by === 0) return;
          event.preventDefault();
          event.stopPropagation();
          setHeight(heightOfTimeline() + by);
        }}
      />
      <div class="lower">
        <section class="tabs">
          <div role="tablist" class="tablist">
            {kTabs.map((name) => (
              <button key={name} id={`tab-${name}`} type="button" role="tab" aria-selected={tab === name} aria-controls="pane" onClick={() => patch({ tab: name })}>
                {t(`tab.${name}` as Key)}
              </button>
            ))}
          </div>
          <div class="pane" id="pane" role="tabpanel" aria-labelledby={`tab-${tab}`}>
            <Pane tab={tab} />
          </div>
        </section>
        <DetailPanel />
      </div>
    </main>
  );
}

function Pane({ tab }: { tab: Tab }) {
  if (tab === 'sites') return <SitesPane />;
  if (tab === 'composition') return <CompositionPane />;
  if (tab === 'blocks') return <RowsPane key="blocks" table="blocks" />;
  if (tab === 'events') return <RowsPane key="events" table="events" />;
  if (tab === 'compare') return <ComparePane />;
  return <PoolPane />;
}

// What the recording lacks is said where it matters: above the picture drawn from it.
function Notices() {
  const from = input.value;
  if (!from) return null;
  const lines = [...reportLines(), ...from.damage];
  if (from.dropped > 0) lines.push(t('app.dropped', formatCount(from.dropped)));
  if (failure.value !== null) lines.push(`${t('app.failed')} ${t('app.failed.do')}`);
  return lines.length === 0 ? null : (
    <ul class="notices">
      {lines.map((line) => <li key={line}>{line}</li>)}
    </ul>
  );
}

// What a report was made without, by choice or for want of room.
function reportLines(): string[] {
  const facts = reportFacts.value;
  if (!facts) return [];
  const name = (prefix: string, word: string): string => {
    const key = `${prefix}.${word}`;
    return key in kDictionaries.en ? t(key as Key) : word;
  };
  const lines: string[] = [];
  if (facts.left_out.length > 0) {
    const parts = facts.left_out.map((entry) => t('report.part', formatCount(entry.kept), formatCount(entry.all), name('report.of', entry.what)));
    lines.push(t('report.reduced', parts.join(t('report.comma'))));
  }
  if (facts.redacted.length > 0) {
    lines.push(t('report.redacted', facts.redacted.map((word) => name('report.redact', word)).join(t('report.comma'))));
  }
  return lines;
}

function setHeight(height: number): void {
  timelineHeight.value = Math.max(height, kLeast);
  writeSetting('timeline.height', String(timelineHeight.value));
}

function resize(event: PointerEvent): void {
  const bar = event.currentTarget as HTMLElement;
  const from = heightOfTimeline();
  bar.setPointerCapture(event.pointerId);
  const move = (next: PointerEvent): void => setHeight(from + next.clientY - event.clientY);
  const done = (): void => {
    bar.removeEventListener('pointermove', move);
    bar.removeEventListener('pointerup', done);
  };
  bar.addEventListener('pointermove', move);
  bar.addEventListener('pointerup', done);
}
