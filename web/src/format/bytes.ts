// Bytes as people read them: binary units, three significant digits, one spelling everywhere.

const kUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

/** The power of 1024 in which `bytes` is read best. */
export function byteExponent(bytes: number): number {
  const magnitude = Math.abs(bytes);
  let exponent = 0;
  let limit = 1024;
  while (magnitude >= limit && exponent < kUnits.length - 1) {
    exponent += 1;
    limit *= 1024;
  }
  return exponent;
}

/** Three significant digits, no trailing zeros: 1.5, 12.3, 640. */
export function shortNumber(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return '0';
  const digits = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
  const text = value.toFixed(digits);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '–';
  let exponent = byteExponent(bytes);
  // 1023.9996 KiB reads "1024 KiB": say 1 MiB.
  if (exponent > 0 || Math.abs(bytes) >= 1024) {
    if (Math.abs(bytes) / 1024 ** exponent >= 1023.5 && exponent < kUnits.length - 1) exponent += 1;
  }
  const value = bytes / 1024 ** exponent;
  return `${minus(exponent === 0 ? String(Math.round(value)) : shortNumber(value))} ${kUnits[exponent] ?? ''}`;
}

/** With its sign, as a difference is read: "+64 KiB". */
export function formatBytesSigned(bytes: number): string {
  return bytes > 0 ? `+${formatBytes(bytes)}` : formatBytes(bytes);
}

/** To the byte, digits in groups: "65,536 B". */
export function formatBytesExact(bytes: number): string {
  return `${formatCount(bytes)} B`;
}

export function formatCount(count: number): string {
  return minus(Math.round(count).toString().replace(/\B(?=(\d{3})+$)/g, ','));
}

/** 12.3 k, 4.56 M: where only the order of magnitude matters. */
export function formatCountShort(count: number): string {
  const magnitude = Math.abs(count);
  if (magnitude < 10_000) return formatCount(count);
  if (magnitude < 999_500) return `${shortNumber(count / 1e3)} k`;
  if (magnitude < 999_500_000) return `${shortNumber(count / 1e6)} M`;
  return `${shortNumber(count / 1e9)} G`;
}

export function formatPercent(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return '<0.1 %';
  return `${shortNumber(percent)} %`;
}

function minus(text: string): string {
  return text.startsWith('-') ? `−${text.slice(1)}` : text;
}

/** "64k", "1.5 GiB", "0x400", "4096": what a filter field may hold. Null where it is none of these. */
export function parseBytes(text: string): number | null {
  const trimmed = text.trim().replace(/,/g, '');
  if (/^0x[0-9a-f]+$/i.test(trimmed)) return Number.parseInt(trimmed.slice(2), 16);
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgtpe])(?:i?b)?|b)?$/i.exec(trimmed);
  if (!match) return null;
  const power = match[2] ? ' kmgtpe'.indexOf(match[2].toLowerCase()) : 0;
  return Math.round(Number(match[1]) * 1024 ** power);
}
