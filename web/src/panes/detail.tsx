// One block: what is known of it, its stack open at the user's own frame, its events and neighbours.
// A pinned block stands beside the chosen one.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { ask } from '../api/client';
import type { Frame } from '../api/diagnosis';
import type { Block, Neighbour } from '../api/types';
import { formatBytes, formatBytesExact, formatCount } from '../format/bytes';
import { formatDuration, formatInstant } from '../format/time';
import { shorten } from '../format/path';
import { type Key, kDictionaries, t } from '../i18n';
import { edition, patch, pool, selectBlock, session, showBlock, showVerdict, view } from '../state/store';
import { Empty } from '../ui/empty';
import { FrameLine } from '../ui/frame';
import { Icon } from '../ui/icon';
import { SourceView } from '../ui/source';
import { adviceText, causeName, headline } from './verdicts';
import { threadText } from '../timeline/hover';

export function DetailPanel() {
  const { block, pins } = view.value;
  const shown = [...pins.filter((pin) => pin !== block), ...(block === null ? [] : [block])];
  if (shown.length === 0) return null;
  return (
    <aside class={shown.length > 1 ? 'detail two' : 'detail'} aria-label={t('block.compare')}>
      {shown.slice(-2).map((id) => (
        <BlockCard key={id} id={id} pinned={pins.includes(id)} />
      ))}
    </aside>
  );
}

function BlockCard({ id, pinned }: { id: number; pinned: boolean }) {
  const here = pool.value?.id;
  const generation = edition.value;
  const [block, setBlock] = useState<Block | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let current = true;
    setError(null);
    if (here === undefined) return undefined;
    ask<Block>('block', { pool: here, block: id }).then(
      (answer) => current && setBlock(answer),
      (reason: unknown) => current && setError(reason instanceof Error ? reason.message : String(reason)),
    );
    return () => {
      current = false;
    };
  }, [here, id, generation]);

  const close = (): void => {
    if (pinned) patch({ pins: view.value.pins.filter((pin) => pin !== id) });
    if (view.value.block === id) selectBlock(null);
  };
  return (
    <section class="block-card" aria-label={t('block.title', id)}>
      <header>
        <b>{t('block.title', id)}</b>
        {block && <span class="size">{formatBytes(block.size)}</span>}
        <span class="space" />
        <button
          type="button" class="icon" aria-pressed={pinned} title={t(pinned ? 'block.unpin' : 'block.pin')} aria-label={t(pinned ? 'block.unpin' : 'block.pin')}
          onClick={() => patch({ pins: pinned ? view.value.pins.filter((pin) => pin !== id) : [id] })}
        >
          <Icon name="pin" />
        </button>
        <button type="button" class="icon" title={t('block.show')} aria-label={t('block.show')} onClick={() => void showBlock(id)}>
          <Icon name="target" />
        </button>
        <button type="button" class="icon" title={t('app.close')} aria-label={t('app.close')} onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="block-body">
        {error !== null && <p class="error">{error}</p>}
        {block && <BlockFacts block={block} />}
      </div>
    </section>
  );
}

function BlockFacts({ block }: { block: Block }) {
  const verdict = block.verdict === null ? null : session.value?.diagnosis?.verdicts[block.verdict];
  const opened = block.user_frame ?? -1;
  const frame = block.stack[opened];
  const here = pool.value;
  return (
    <>
      {verdict && (
        <button type="button" class="accusation" title={adviceText(verdict)} onClick={() => void showVerdict(verdict)}>
          <b>{causeName(verdict.cause)}</b> {headline(verdict)}
        </button>
      )}
      {frame ? <FrameLine frame={frame} /> : block.site && <p class="place">{shorten(block.site.place, 80)}</p>}
      {frame && <SourceView file={frame.file} line={frame.line} around={3} />}
      <dl class="facts">
        <Fact name={t('block.size')}>{formatBytesExact(block.size)}</Fact>
        <Fact name={t('block.address')}><code>{block.address}</code></Fact>
        <Fact name={t('block.alloc')}>
          {block.preexisting ? t('block.preexisting') : formatInstant(block.begin, 1e3)}
          {block.step !== null && ` · ${t('word.step', block.step)}`}
        </Fact>
        <Fact name={t('block.free')}>
          {block.end === null ? t('word.alive') : formatInstant(block.end, 1e3)}
          {block.end_step !== null && ` · ${t('word.step', block.end_step)}`}
        </Fact>
        {block.lifetime !== null && <Fact name={t('block.lifetime')}>{formatDuration(block.lifetime)}</Fact>}
        <Fact name={t('block.owner')}>{block.owner ?? '–'}</Fact>
        <Fact name={t('block.thread')}>
          {threadText(block.thread)}
          {block.free_thread !== null && threadText(block.free_thread) !== threadText(block.thread) && ` → ${threadText(block.free_thread)}`}
        </Fact>
        <Fact name={t('block.kind')}>{here ? `${here.device} · ${here.layer}` : ''}</Fact>
        <Fact name={t('block.site')}>
          <button
            type="button" class="text"
            onClick={() => patch({ tab: 'blocks', blocks: { sort: [], filters: { site_id: `=${block.site?.id ?? 0}` } } })}
          >
            {formatCount(block.same_site.blocks)} · {formatBytes(block.same_site.live_bytes)}
          </button>
        </Fact>
        <Accesses block={block} />
      </dl>
      <Stack frames={block.stack} opened={opened} />
      {block.holders.length > 0 && (
        <Part title={t('verdict.held')}>
          <ul class="plain">
            {block.holders.map((holder, index) => <li key={index} title={holder.file ?? ''}><code>{shorten(holder.text, 160)}</code></li>)}
          </ul>
        </Part>
      )}
      <Part title={t('block.events')}>
        <table class="small">
          <tbody>
            {block.events.map((event, index) => (
              <tr key={index}>
                <td>{eventName(event.kind)}</td>
                <td class="number">{event.time === null ? '' : formatInstant(event.time, 1e3)}</td>
                <td>{shorten([threadText(event.thread), event.text ?? ''].filter(Boolean).join(' · '), 80)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <button type="button" class="text" onClick={() => patch({ tab: 'events', events: { sort: [], filters: { block: `=${block.block}` } } })}>
          {t('block.event')}
        </button>
      </Part>
      <Neighbours block={block} />
    </>
  );
}

function eventName(kind: string): string {
  const key = `event.${kind}`;
  return key in kDictionaries.en ? t(key as Key) : kind;
}

/** Whether it was there longer than it was used: what the accesses come to. */
function Accesses({ block }: { block: Block }) {
  const { accesses } = block;
  if (!accesses) return null;
  if (accesses.first === null || accesses.last === null) return <Fact name={t('block.accesses')}>{t('block.accesses.none')}</Fact>;
  return (
    <>
      <Fact name={t('block.accesses')}>{formatCount(accesses.count)}</Fact>
      <Fact name={t('block.access.first')}>{t('block.access.after', formatDuration(accesses.first - block.begin))}</Fact>
      {block.end !== null && <Fact name={t('block.access.last')}>{t('block.access.before', formatDuration(Math.max(block.end - accesses.last, 0)))}</Fact>}
      <Fact name={t('block.access.idle')}>{formatDuration(accesses.longest_idle)}</Fact>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="part">
      <h4>{title}</h4>
      {children}
    </section>
  );
}

/** Frames from the user's own outward; those inside it (the libraries' business) on request. */
function Stack({ frames, opened }: { frames: Frame[]; opened: number }) {
  const [all, setAll] = useState(false);
  if (frames.length === 0) {
    return (
      <Part title={t('block.stack')}>
        <Empty title={t('block.stack.none')} action={t('block.stack.none.do')} />
      </Part>
    );
  }
  const from = all || opened < 0 ? 0 : opened;
  return (
    <Part title={t('block.stack')}>
      <ol class="stack">
        {frames.slice(from, from + 1000).map((frame, index) => (
          <li key={from + index} class={from + index === opened ? 'opened' : ''}>
            <FrameLine frame={frame} />
            <button
              type="button" class="icon" title={t('sites.to_blocks')} aria-label={t('sites.to_blocks')}
              onClick={() => patch({ tab: 'blocks', blocks: { sort: [], filters: { stack: frame.function } } })}
            >
              <Icon name="forward" />
            </button>
          </li>
        ))}
      </ol>
      {opened > 0 && (
        <button type="button" class="text" onClick={() => setAll(!all)}>
          {all ? t('block.stack.user') : t('block.stack.all', frames.length)}
        </button>
      )}
    </Part>
  );
}

function Neighbours({ block }: { block: Block }) {
  const { below, above } = block.neighbours;
  if (below.length + above.length === 0) return null;
  const row = (neighbour: Neighbour, side: string) => (
    <tr key={`${side}${neighbour.block}`}>
      <td class="faint">{side}</td>
      <td>
        <button type="button" class="text" onClick={() => selectBlock(neighbour.block)}>#{neighbour.block}</button>
      </td>
      <td><code>{neighbour.address}</code></td>
      <td class="number">{formatBytes(neighbour.size)}</td>
      <td class="number faint">{neighbour.gap > 0 ? `${t('block.gap')} ${formatBytes(neighbour.gap)}` : ''}</td>
    </tr>
  );
  return (
    <Part title={t('block.neighbours')}>
      <table class="small">
        <tbody>
          {above.slice(0, 3).reverse().map((neighbour) => row(neighbour, t('block.above')))}
          {below.slice(0, 3).map((neighbour) => row(neighbour, t('block.below')))}
        </tbody>
      </table>
    </Part>
  );
}
