// Addresses are 64 bits: strings on the wire and in the page, never numbers.

/** "0x7F…", "7f…h"-less hex or decimal → canonical "0x…"; null where it is neither. */
export function parseAddress(text: string): string | null {
  const trimmed = text.trim().replace(/_/g, '');
  if (!/^(0x[0-9a-f]+|\d+|[0-9a-f]+)$/i.test(trimmed)) return null;
  try {
    const value = /^(0x|\d+$)/i.test(trimmed) ? BigInt(trimmed) : BigInt(`0x${trimmed}`);
    return value < 2n ** 64n ? `0x${value.toString(16)}` : null;
  } catch {
    return null;
  }
}
