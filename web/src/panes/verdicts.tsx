// The answer first: each verdict with its number, confidence, lines and advice. A click takes every
// view to its evidence.

import { signal } from '@preact/signals';

import type { Frame, Verdict } from '../api/diagnosis';
import { formatBytes, formatBytesSigned, formatCount, formatPercent } from '../format/bytes';
import { shorten } from '../format/path';
import { type Key, kDictionaries, language, plural, t } from '../i18n';
import { session, showVerdict, status, view } from '../state/store';
import { FrameLine, placeOf } from '../ui/frame';

const suspectsOpen = signal(false);

export function causeName(cause: string): string {
  const key = `verdict.${cause}`;
  return key in kDictionaries.en ? t(key as Key) : cause;
}

/** The number that counts: how fast, else how much. */
export function headline(verdict: Verdict): string {
  if (verdict.bytes_per_step !== null) return t('verdict.per_step', formatBytesSigned(verdict.bytes_per_step));
  if (verdict.bytes_per_second !== null) return t('verdict.per_second', formatBytesSigned(verdict.bytes_per_second));
  return verdict.bytes_total > 0 ? formatBytes(verdict.bytes_total) : '';
}

function total(verdict: Verdict): string {
  const blocks = verdict.blocks > 0 ? plural(verdict.blocks, 'word.block', 'word.blocks', formatCount(verdict.blocks)) : '';
  const parts = [blocks === '' ? formatBytes(verdict.bytes_total) : t('verdict.total', formatBytes(verdict.bytes_total), blocks)];
  if (verdict.first_step !== null) parts.push(t('verdict.since', formatCount(verdict.first_step)));
  return parts.join(' · ');
}

/** In English the diagnosis' own words; else what its cause asks for, if it is one of the common ones. */
export function adviceText(verdict: Verdict): string {
  if (language.value === 'en') return verdict.advice;
  if (verdict.cause === 'none') return isUnjudged(verdict) ? t('verdict.short') : t('advice.none');
  const key = verdict.kept_at && (verdict.cause === 'leak' || verdict.cause === 'retained_graph') ? 'advice.kept' : `advice.${verdict.cause}`;
  if (!(key in kDictionaries.en) || !verdict.site) return verdict.advice;
  const place = (frame: Frame): string => `${placeOf(frame)}${frame.text !== null && frame.text.length <= 60 ? `（${frame.text}）` : ''}`;
  return t(key as Key, place(verdict.site), verdict.kept_at ? place(verdict.kept_at) : '');
}

/** That nothing grows is a finding only where growth could have been seen. */
export function isUnjudged(verdict: Verdict): boolean {
  return verdict.cause === 'none' && typeof verdict.evidence['reason'] === 'string';
}

function limitText(verdict: Verdict): string {
  if (isUnjudged(verdict)) return '';
  const number = (name: string): number | null => {
    const value = verdict.evidence[name];
    return typeof value === 'number' ? value : null;
  };
  const step = number('detection_limit_bytes_per_step');
  if (step !== null) return t('verdict.limit', formatBytes(step), formatCount(number('steps') ?? 0));
  const second = number('detection_limit_bytes_per_second');
  return second !== null ? t('verdict.limit.second', formatBytes(second)) : t('verdict.short');
}

export function VerdictBar() {
  const open = session.value;
  const diagnosis = open?.diagnosis ?? null;
  if (!open) return null;
  if (!diagnosis) {
    const running = status.value?.diagnosis === 'running';
    return (
      <section class="verdicts">
        <div class="verdict quiet">{running ? <span class="spinner" /> : null}{running ? t('verdict.running') : t('verdict.missing')}</div>
      </section>
    );
  }
  return (
    <section class="verdicts" aria-label={t('verdict.title')}>
      {diagnosis.verdicts.map((verdict, index) => (
        <Card key={verdict.id} verdict={verdict} kind={isUnjudged(verdict) ? 'unjudged' : verdict.cause === 'none' ? 'none' : 'verdict'} first={index === 0} />
      ))}
      {suspectsOpen.value && diagnosis.suspects.map((verdict) => <Card key={verdict.id} verdict={verdict} kind="suspect" first={false} />)}
      {diagnosis.suspects.length > 0 && (
        <button type="button" class="text more" aria-expanded={suspectsOpen.value} onClick={() => (suspectsOpen.value = !suspectsOpen.value)}>
          {suspectsOpen.value ? t('verdict.fewer') : t('verdict.more', diagnosis.suspects.length)}
        </button>
      )}
    </section>
  );
}

function Card({ verdict, kind, first }: { verdict: Verdict; kind: 'none' | 'unjudged' | 'verdict' | 'suspect'; first: boolean }) {
  const chosen = view.value.verdict === verdict.id;
  const holder = verdict.kept_at ? null : (verdict.holders[0] ?? null);
  const name = kind === 'suspect' ? `${t('verdict.suspect')}: ${causeName(verdict.cause)}` : isUnjudged(verdict) ? t('verdict.unjudged') : causeName(verdict.cause);
  return (
    <article class={['verdict', kind, chosen ? 'chosen' : '', first ? 'first' : ''].join(' ')}>
      <button type="button" class="verdict-main" aria-pressed={chosen} title={t('verdict.show')} onClick={() => void showVerdict(verdict)}>
        <span class="cause">{name}</span>
        <span class="headline">{verdict.cause === 'none' ? '' : headline(verdict)}</span>
        <span class="amount">{verdict.cause === 'none' ? limitText(verdict) : total(verdict)}</span>
        {kind !== 'unjudged' && (
          <span class="sure">
            <i aria-hidden="true"><b style={{ width: `${Math.round(verdict.confidence * 100)}%` }} /></i>
            {t('verdict.sure', formatPercent(verdict.confidence))}
          </span>
        )}
      </button>
      {verdict.cause !== 'none' && (
        <div class="verdict-lines">
          {verdict.site && <FrameLine frame={verdict.site} label={t('verdict.allocated')} />}
          {verdict.kept_at && <FrameLine frame={verdict.kept_at} label={t('verdict.kept')} />}
          {holder && (
            <div class="frame">
              <span class="label">{t('verdict.held')}</span>
              <code>{shorten(holder.text, 140)}</code>
            </div>
          )}
        </div>
      )}
      {verdict.advice !== '' && <p class="advice" title={verdict.advice}><b>{t('verdict.advice')}</b>{adviceText(verdict)}</p>}
    </article>
  );
}
