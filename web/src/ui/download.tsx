// Tables that are here already, as files.

import { csvText, type TableRecord } from '../format/csv';
import { t } from '../i18n';
import { Icon } from './icon';

function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** CSV and JSON of what `records` gives when asked: all of it, not what is in sight. */
export function Downloads({ name, records }: { name: string; records: () => readonly TableRecord[] | Promise<readonly TableRecord[]> }) {
  const take = async (format: 'csv' | 'json'): Promise<void> => {
    const rows = await records();
    if (format === 'csv') save(`${name}.csv`, 'text/csv', csvText(rows));
    else save(`${name}.json`, 'application/json', JSON.stringify(rows, null, 1));
  };
  return (
    <span class="exports">
      <Icon name="export" />
      {t('table.export')}
      <button type="button" onClick={() => void take('csv')}>CSV</button>
      <button type="button" onClick={() => void take('json')}>JSON</button>
    </span>
  );
}
