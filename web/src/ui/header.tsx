// What is open: run, process, memory; language, theme, link, keys.

import { formatCountShort } from '../format/bytes';
import { baseName, shorten } from '../format/path';
import { language, setLanguage, t } from '../i18n';
import { focusPool, input, pool, session, toast } from '../state/store';
import { Icon } from './icon';
import { keysOpen } from './keyboard';
import { MemoryChooser } from './memory_chooser';
import { Select } from './select';
import { theme, toggleTheme } from './theme';

export function Header() {
  const open = session.value;
  const here = pool.value;
  const from = input.value;
  const script = scriptName();
  return (
    <header class="top">
      <span class="brand"><Mark />MemScope</span>
      {open && from && here && (
        <>
          <span class="run" title={from.path}>
            <b>{shorten(script || from.name, 40)}</b>
            <span class="faint">{runFacts()}</span>
          </span>
          {open.growing && <span class="live"><i />{t('app.live')}</span>}
          {open.inputs.length > 1 && (
            <Select label={t('app.process')} hideLabel value={String(from.id)} options={open.inputs.map((entry) => [String(entry.id), inputLabel(entry.id)])}
              onChange={(id) => chooseProcess(Number(id))} />
          )}
          <MemoryChooser />
        </>
      )}
      <span class="space" />
      <button type="button" class="text" onClick={() => setLanguage(language.value === 'zh' ? 'en' : 'zh')} lang={language.value === 'zh' ? 'en' : 'zh-CN'}>
        {t('app.language')}
      </button>
      <Round icon={theme.value === 'dark' ? 'sun' : 'moon'} label={t('app.theme')} onClick={toggleTheme} />
      <Round icon="link" label={t('app.link')} onClick={copyLink} />
      <Round icon="keys" label={t('app.keys')} onClick={() => (keysOpen.value = true)} />
    </header>
  );
}

function Round({ icon, label, onClick }: { icon: string; label: string; onClick: () => void }) {
  return (
    <button type="button" class="icon" title={label} aria-label={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      <path class="mark-1" d="M2 17V9l4-3 4 2 4-4 4 2v11Z" />
      <path class="mark-2" d="M2 17v-1.500L18 11v6Z" />
    </svg>
  );
}

/** The program: of "python -u train.py --lr 1" the script. */
function scriptName(): string {
  const process = input.value?.process;
  if (!process) return '';
  const words = (process.command ?? '').slice(0, 4096).split(' ');
  const script = words.find((word) => /\.py$/.test(word));
  const module = words[words.indexOf('-m') + 1];
  if (script) return baseName(script);
  return words.includes('-m') && module ? module : baseName(process.argv0);
}

function runFacts(): string {
  const from = input.value;
  if (!from) return '';
  const facts: string[] = [];
  if (from.process?.rank !== null && from.process?.rank !== undefined) facts.push(t('word.rank', from.process.rank));
  if (from.steps > 0) facts.push(t('word.steps', formatCountShort(from.steps)));
  facts.push(t('word.blocks', formatCountShort(from.blocks)));
  return facts.join(' · ');
}

function inputLabel(id: number): string {
  const entry = session.value?.inputs.find((candidate) => candidate.id === id);
  if (!entry) return String(id);
  const rank = entry.process?.rank;
  return rank === null || rank === undefined ? shorten(entry.name, 40) : `${t('word.rank', rank)} · ${shorten(entry.name, 30)}`;
}

// The same memory of another process; what has panes keeps them.
function chooseProcess(id: number): void {
  const pools = session.value?.pools.filter((candidate) => candidate.input === id) ?? [];
  const same = pools.find((candidate) => candidate.name === pool.value?.name) ?? pools[0];
  if (same) focusPool(same.id);
}

// Where the browser refuses the clipboard the address bar has the link all the same.
function copyLink(): void {
  navigator.clipboard.writeText(globalThis.location.href).then(
    () => {
      toast.value = t('app.linked');
      setTimeout(() => (toast.value = null), 1600);
    },
    () => {
      toast.value = globalThis.location.href;
      setTimeout(() => (toast.value = null), 6000);
    },
  );
}
