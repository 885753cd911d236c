// "Only this window": a table follows the window of the timeline.

import { t } from '../i18n';
import type { TableState } from '../state/view_state';
import { onlyWindow } from './filters';

export function WindowSwitch({ state, onChange }: { state: TableState; onChange: (state: TableState) => void }) {
  const on = onlyWindow(state);
  return (
    <label class="check" title={t('table.window.hint')}>
      <input
        type="checkbox" checked={on}
        onChange={() => onChange({ ...state, filters: { ...state.filters, window: on ? '' : '1' } })}
      />
      {t('table.window')}
    </label>
  );
}
