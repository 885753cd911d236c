// The lines around an allocation, from the trace's own copy of the file.

import { useEffect, useState } from 'preact/hooks';

import { ask } from '../api/client';
import type { Source } from '../api/types';
import { t } from '../i18n';
import { input } from '../state/store';
import { baseName } from '../format/path';

export function SourceView({ file, line, around = 6 }: { file: string | null; line: number | null; around?: number }) {
  const [source, setSource] = useState<Source | null>(null);
  const [missing, setMissing] = useState(false);
  const from = input.value?.id;
  useEffect(() => {
    let current = true;
    setSource(null);
    setMissing(false);
    if (file === null || line === null || from === undefined) {
      setMissing(true);
      return undefined;
    }
    ask<Source>('source', { input: from, file, line, around }).then(
      (answer) => current && setSource(answer),
      () => current && setMissing(true),
    );
    return () => {
      current = false;
    };
  }, [file, line, from, around]);
  if (missing) return <p class="faint">{t('sites.source.none')}</p>;
  if (!source) return null;
  const end = source.end_line ?? source.line;
  return (
    <figure class="source">
      <figcaption title={source.file}>
        {baseName(source.file)}:{source.line}
        {source.newer_than_process && <em> {t('sites.source.changed')}</em>}
      </figcaption>
      <ol>
        {source.lines.map((text, index) => {
          const number = source.first_line + index;
          return (
            <li key={number} class={number >= source.line && number <= end ? 'here' : ''}>
              <span>{number}</span>
              <code>{text.length > 400 ? `${text.slice(0, 400)}…` : text}</code>
            </li>
          );
        })}
      </ol>
    </figure>
  );
}
