// CSV after RFC 4180; cells that a spreadsheet would run are made text.

export type TableRecord = Readonly<Record<string, string | number | boolean | null>>;

export function csvText(records: readonly TableRecord[]): string {
  const columns = Object.keys(records[0] ?? {});
  const cell = (value: TableRecord[string] | undefined): string => {
    if (value === null || value === undefined) return '';
    if (typeof value !== 'string') return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const lines = [columns.map(cell), ...records.map((record) => columns.map((column) => cell(record[column] ?? null)))];
  return lines.map((line) => `${line.join(',')}\r\n`).join('');
}
