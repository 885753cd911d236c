// A line of the user's program: file:line, function, statement.

import type { Frame } from '../api/diagnosis';
import { baseName, shorten } from '../format/path';
import { t } from '../i18n';

export function placeOf(frame: { file: string | null; line: number | null; function?: string; module?: string | null }): string {
  if (frame.file === null) return frame.module ?? frame.function ?? t('word.native');
  return frame.line === null ? baseName(frame.file) : `${baseName(frame.file)}:${frame.line}`;
}

export function FrameLine({ frame, label }: { frame: Frame; label?: string }) {
  return (
    <div class={frame.user ? 'frame user' : 'frame'} title={[frame.file, frame.function].filter(Boolean).join('\n')}>
      {label !== undefined && <span class="label">{label}</span>}
      <span class="place">{shorten(placeOf(frame), 60)}</span>
      {frame.text !== null ? <code>{shorten(frame.text, 160)}</code> : <span class="function">{shorten(frame.function, 90)}</span>}
      {frame.inferred && <em title={t('sites.source.changed')}>?</em>}
    </div>
  );
}
